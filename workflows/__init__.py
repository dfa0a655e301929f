"""What people declare: TOML in, validated specs out."""
