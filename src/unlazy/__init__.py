"""`unlazy`: find out where gradient descent on a neural network learns features, and so beats fixed features.

The way through the package follows the data:

    paper - claim - study -> trials -> engine -> records -> verdict -> table, figure, page

This module stays empty of imports, so that the command line answers at once.
"""

__version__ = "0.1.0"
