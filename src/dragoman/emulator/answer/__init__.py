"""What the model says as Google sends it: chunks, their merge, and everything beside the parts."""
