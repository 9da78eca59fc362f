"""What is written about a program: certificates, reports, and their JSON schemas."""
