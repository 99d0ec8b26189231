"""What is done to, and demanded of, a write after authorization and before it is stored (apiserver ``admission``)."""
