"""What is here, what is missing and what that costs; and whether the public facts hold on this SDK."""
