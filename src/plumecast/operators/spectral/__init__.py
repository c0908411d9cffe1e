"""The spectral family: convolutions by least squares per Fourier frequency."""
