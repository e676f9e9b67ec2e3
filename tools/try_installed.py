"""Use an installed hardmargin as a first-time user would, with nothing but what it depends on."""

from importlib.metadata import version

from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import cross_val_score, train_test_split

import hardmargin
from hardmargin import EnsembleSVC, GreedySVC


def main() -> None:
    assert hardmargin.__version__ == version("hardmargin")
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    clf = EnsembleSVC().fit(X_train, y_train)
    accuracy = clf.score(X_test, y_test)
    assert accuracy > 0.95
    assert clf.predict_proba(X_test).shape == (len(X_test), 2)
    assert cross_val_score(GreedySVC(), *load_iris(return_X_y=True)).mean() > 0.9
    print(f"hardmargin {hardmargin.__version__} from {hardmargin.__path__[0]}: {accuracy:.3f}")


if __name__ == "__main__":
    main()
