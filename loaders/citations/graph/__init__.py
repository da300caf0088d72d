"""Citations as claims, kept up to date with the texts and policy families in the store."""
