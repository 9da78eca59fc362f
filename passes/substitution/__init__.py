"""Graph substitutions: rules as data, their generation and proof, and the search over them."""
