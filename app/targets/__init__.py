"""What is watched: targets, recipes, deployments, budgets, the config file and the schedule grid."""
