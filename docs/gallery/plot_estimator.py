"""
Use a tangent kernel in scikit-learn
====================================

Cross-validate a neural tangent kernel within a scikit-learn pipeline.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unlazy.estimators import NTKClassifier

X, y = load_breast_cancer(return_X_y=True)
scores = cross_val_score(make_pipeline(StandardScaler(), NTKClassifier()), X, y, cv=3)
print(f"accuracy {100 * scores.mean():.1f} %")
assert scores.mean() > 0.95
