"""`measure`: one problem through the stages, as one `Measurement`, or many seeds as an `Ensemble`."""
