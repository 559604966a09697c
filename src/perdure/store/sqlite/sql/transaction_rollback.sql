-- Forget the transaction.
ROLLBACK
