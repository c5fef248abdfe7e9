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
        "Bra Chi Dro Fel Gru Hes Ilv Jor Kre Lud Mib Nuv Osk Pra Qui Rho Sev Tul Urv Vax Wem Yor Zan Dwe Fro Glim Stra Thob",
        "dak lim nor pesh quil rud sken tavi vex wun zel bril mot gath hule fim cobe dresh jin kol lurn mave nesk pago rist",
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

_CHINESE = {
    "person": _join(
        "布 奇 卓 费 格 赫 伊 乔 克 卢 米 努 奥 普 奎 罗 塞 图 乌 瓦 温 约 赞 德 弗 林 斯 托",
        "达 黎 诺 佩 鲁 坎 维 恩 泽 贝 莫 加 胡 菲 科 雷 锦 戈 伦 梅 尼 帕 丝 巴 顿",
    ),
    "town": _join(
        "阿 波 卡 多 艾 法 高 洪 易 嘉 凯 洛 蒙 纳 欧 培 夸 若 萨 塔 乐 沃 韦 雅 齐",
        "梅尔 瓦尔 尔姆 恩纳 斯卡 尔托 杜恩 沃德 布隆 奥塔 隆加 塞尔 鲁恩 尔甸",
    ),
    "river": _join("泽 银 玉 霜 翠 幽 曲 鸣 碧 岚", "索河 漪河 沙河 芦河 汀河"),
    "ship": _join("飞 破 追 逐 远 海 星 晨 暮 银", "浪号 鸥号 帆号 鲸号 鹭号"),
    "book": _join("云 灯 石 松 砚 竹 雾 花 雁 冬", "山录 窗录 渡录 野录 堂录"),
    "guild": _join("铁 铜 丝 陶 木 盐 麦 琴 墨 羽", "锤会 轮会 灯会 盾会 针会"),
    "work": _join("玄 朱 苍 赤 白 金 寒 晚 伏 连", "鹤 虎 狮 鹿 雀"),
}

NAMES: Mapping[Language, Mapping[str, tuple[str, ...]]] = {"en": _ENGLISH, "zh": _CHINESE}
