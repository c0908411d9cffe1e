"""The networks: a U-Net and a Fourier neural operator, trained with PyTorch."""
