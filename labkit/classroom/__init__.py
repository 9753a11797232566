"""For a class: guesses, the herd with sliders, student copies, grading."""
