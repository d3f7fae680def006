"""Jobs that share GPUs of mixed generations and slow each other down, epoch after epoch."""
