-- Make the transaction last.
COMMIT
