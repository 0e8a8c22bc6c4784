"""MLflow server, model packaging, promotion and retraining."""
