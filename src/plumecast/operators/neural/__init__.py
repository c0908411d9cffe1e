"""The networks: a U-Net, a Fourier neural operator and a DeepONet, trained with PyTorch."""
