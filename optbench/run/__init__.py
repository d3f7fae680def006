"""Running what is missing of a study: instances are made, cells solved, and answers judged."""
