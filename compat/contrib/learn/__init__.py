"""`tf.contrib.learn`: estimators, experiments, monitors and data as they were used until 1.4."""
