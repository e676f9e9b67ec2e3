"""The regularisation path of the C-SVM, for every C at once."""
