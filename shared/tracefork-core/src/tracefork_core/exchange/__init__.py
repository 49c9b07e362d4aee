"""The contract that seams and sessions share."""
