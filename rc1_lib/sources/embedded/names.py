"""Inventories of invented names: one word each, made from syllables, the same in every run.

Each kind of entity has its own sounds, so that a reader (or a tiny model) can tell a town from a person.
Chinese names have two or three characters; those of rivers, ships, books and guilds end in their kind's character.
"""

from __future__ import annotations

from collections.abc import Mapping

from rc1_lib.records import Language

KINDS = ("person", "town", "river", "ship", "book", "guild", "work")


def _join(heads: str, tails: str) -> tuple[str, ...]:
    """Every head with every tail; both are lists of syllables parted by spaces."""
    return tuple(head + tail for head in heads.split() for tail in tails.split())


_ENGLISH = {
    "person": _join(
        "Bra Chi Dro Fel Gru Hes Ilv Jor Kre Lud Mib Nuv Osk Pra Qui Rho Sev Tul Urv Vax Wem Yor Zan Dwe Fro Glim Stra "
        "Thob",
        "dak lim nor pesh quil rud sken tavi vex wun zel bril mot gath hule fim cobe dresh jin kol lurn mave nesk pago "
        "rist",
    ),
    "town": _join(
        "Abr Bolv Cazh Dorv Eshk Fald Gorv Hulm Ixt Jaln Kelv Lorm Munk Narv Olb Pelth Quar Ruvn Salk Tarv Ulg Vorn "
        "Wesk Yald Zirn",
        "amere ovar ulm enna iskar oth adun ewold ibron otta unga essel arrun ilden",
    ),
    "river": _join("Zel Ith Ond Rul Sael Tyr Mav Lo Ashi Eru", "thos wyn ruba mish kess"),
    "ship": _join("Argl Bree Clo Dask Erv Fint Gald Hov Isk Jub", "rora lune tatta rimbar doda"),
    "book": _join("Tom Cod Ves Lib Nar Ghal Pru Sky Wyr Eph", "narium bellon lopsis rudex githal"),
    "guild": _join("Bro Cal Del Fen Hal Kor Mar Sol Tan Ver", "stuve dwain quorn bandt thule"),
    "work": _join("Ang Bast Crag Drum Estr Grim Holl Keep Pyl Spir", "alon ebor ioth unda ovel"),
}

# Few characters in all: towns begin like people do, and then go on with a character that no person's name ends in.
_CHINESE = {
    "person": _join(
        "布 奇 卓 费 格 赫 伊 乔 克 卢 米 努 奥 普 奎 罗 塞 图 乌 瓦 温 约 赞 德 弗 林 斯 托",
        "达 黎 诺 佩 鲁 坎 维 恩 泽 贝 莫 加 胡 菲 科 雷 锦 戈 伦 梅 尼 帕 丝 巴 顿",
    ),
    "town": _join(
        "布 奇 卓 费 格 赫 伊 乔 克 卢 米 努 普 奎 罗 图 乌 温 约 赞 德 弗 林 乐 齐",
        "瓦尔 尔姆 斯卡 尔托 沃尔 沃姆 隆尔 隆姆 塞尔 奥塔 瓦姆 斯塔 沃斯 隆斯",
    ),
    "river": _join("银 玉 白 青 长 清 明 黑 金 石", "沙河 花河 草河 星河 月河"),
    "ship": _join("飞 远 海 星 银 白 红 金 长 明", "鱼号 帆号 马号 鸟号 风号"),
    "book": _join("云 灯 石 松 竹 花 雨 海 山 水", "窗录 路录 野录 夜录 门录"),
    "guild": _join("铁 铜 丝 陶 木 盐 麦 金 羊 纸", "轮会 灯会 针会 锅会 旗会"),
    "work": _join("白 金 红 黑 青 银 铁 石 木 玉", "狮 虎 鹿 狐 猫"),
}

NAMES: Mapping[Language, Mapping[str, tuple[str, ...]]] = {"en": _ENGLISH, "zh": _CHINESE}
