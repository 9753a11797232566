"""The pictures of the notebooks: a function takes a tidy DataFrame and returns a
`Picture`. It draws and never computes. All of them share `labkit.plots.style`.
"""
