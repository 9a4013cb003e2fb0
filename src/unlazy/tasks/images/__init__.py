"""Images: file readers, named datasets, and families of image tasks."""
