"""A clause that is cut out of its sentence: what stands before it and behind it decides whether it still says the same."""

import pytest

from shiguan.claims.restatement import restates

STANDS = [
    # What was done, whatever tells where, when or why before it.
    ("During the strike, the firm closed two plants.", "The firm closed two plants."),
    ("A lawyer by training, Otto founded the bank.", "Otto founded the bank."),
    ("Unfortunately, the ship sank in May.", "The ship sank in May."),
    ("Two years later, the firm closed two plants.", "The firm closed two plants."),
    ("Karl sold the mill; his brother bought it back in May.", "Karl sold the mill."),
    ("Karl sold his shares, the firm closed, and Otto fled.", "Karl sold his shares."),
    ("He left Acre, the town of his birth, in 1300.", "He left Acre."),
    ("The whale is a mammal, not a fish.", "The whale is a mammal."),
    ("Karl and Otto fled to Acre, and the church was burned.", "The church was burned."),
    ("The church was destroyed during the siege.", "The church was destroyed."),
    ("Although Otto had sold the mill, his heirs were poor.", "Otto had sold the mill."),
    ("The army took the town with no losses.", "The army took the town."),
    ("Decisions are made by the council (usually of old men).", "Decisions are made by the council."),
    ("The system evolved in early fish as well as in Acre.", "The system evolved in early fish."),
    ("Acre was held by Otto, a county judge who had come from Rome.", "Acre was held by Otto, a county judge."),
    ("Otto sold the horse to the king of Acre.", "Otto sold the horse."),
    ("In May Karl Hale wrote the study.", "In May Hale wrote the study."),
    ("In May, the firm closed two plants.", "The firm closed two plants."),
    (
        "Norman words, such as baron (barwn), first entered Welsh then.",
        "Norman words, such as baron, first entered Welsh then.",
    ),
    ("Otto was said to be the king. No soldiers reached Acre.", "No soldiers reached Acre."),
    ("次年，李自成攻入北京。", "李自成攻入北京。"),
    ("由于资金不足，工程被迫停工。", "工程被迫停工。"),
    ("众所周知，气候变化导致海平面上升。", "气候变化导致海平面上升。"),
    ("1949年，张三来自北京，李四来自上海。", "李四来自上海。"),
    ("丙申，李勣败高丽，克扶馀城。", "李勣败高丽，克扶馀城。"),
    ("实际上，聂耳仅写作了主旋律谱。", "聂耳仅写作了主旋律谱。"),
]
FALLS = [
    # A sentence does not go on behind its stop, nor does what somebody says.
    ("The king abdicated. In May, his son was crowned.", "The king abdicated in May."),
    ("The church was destroyed. During the siege, the monks hid.", "The church was destroyed during the siege."),
    ("Otto, said Karl, is mad.", "Otto said Karl is mad."),
    ("No, passengers may smoke.", "No passengers may smoke."),
    ("该校成立于1950年。3月，开始招生。", "该校成立于1950年3月。"),
    ("获奖者：张三。李四、王五落选。", "张三、李四、王五落选。"),
    # What the lead says is not told as a fact.
    ("Apparently, Karl fled to Acre.", "Karl fled to Acre."),
    ("In the opera, Karl kills Otto.", "Karl kills Otto."),
    ("In the simulation, the reactor exploded.", "The reactor exploded."),
    ("To Otto, Karl was a traitor.", "Karl was a traitor."),
    ("For many critics, the novel is a failure.", "The novel is a failure."),
    ("The headline read: the king is dead.", "The king is dead."),
    ("Otto's accusation was simple: Karl stole the money.", "Karl stole the money."),
    ("Otto believed Karl was dead and the war was over.", "The war was over."),
    ("The tax on salt and tea was abolished in 1790.", "Tea was abolished in 1790."),
    ("The man who sold the horse and the cart fled to Acre.", "The cart fled to Acre."),
    ("All but the king fled to Acre.", "The king fled to Acre."),
    ("Karl refused to enter Acre and set the town on fire.", "Karl set the town on fire."),
    ("Adams and Burr studied at Harvard and Yale, respectively.", "Burr studied at Harvard."),
    ("据邻居介绍，死者生前患有抑郁症。", "死者生前患有抑郁症。"),
    ("在他看来，中医是伪科学。", "中医是伪科学。"),
    ("不按时交租，房东有权收回房屋。", "房东有权收回房屋。"),
    ("逾期不申报的，税务机关加收滞纳金。", "税务机关加收滞纳金。"),
    ("开启省电模式之后，屏幕自动变暗。", "屏幕自动变暗。"),
    ("反方：人工智能取代了教师。", "人工智能取代了教师。"),
    # In Chinese a word may end where another one could.
    ("三号嫌疑人承认杀人。", "嫌疑人承认杀人。"),
    ("老年农民免交农业税。", "农民免交农业税。"),
    ("他担心2030年机器人取代工人。", "机器人取代工人。"),
    ("上海人口少于重庆。", "上海人口少。"),
    ("他入党于1927年以前。", "他入党于1927年。"),
    ("南京的大学免除学费。", "南京大学免除学费。"),
    ("被告殴打的原告住院三天。", "被告殴打原告住院三天。"),
    ("于是日军占领南京。", "于日军占领南京。"),
    # What follows says of whom or when it is so, or takes it back.
    ("The museum is free for children under five.", "The museum is free."),
    ("Dogs are allowed on a lead.", "Dogs are allowed."),
    ("The light flashes when the battery runs low.", "The light flashes."),
    ("She was deaf in one ear.", "She was deaf."),
    ("Karl was too weak to lift the sword.", "Karl was too weak."),
    ("He hated all men who drank.", "He hated all men."),
    ("The flag is red and white.", "The flag is red."),
    ("The earth is flat, as was long believed.", "The earth is flat."),
    ("Karl was a genius, in his own opinion.", "Karl was a genius."),
    ("The dam is safe, the head of the water board told us.", "The dam is safe."),
    ("The fee is 5 dollars (for students).", "The fee is 5 dollars."),
    ("Karl founded Acre in 1200. Modern scholars reject this story.", "Karl founded Acre in 1200."),
    ("Anna is the daughter of the count. Or so she claims.", "Anna is the daughter of the count."),
    ("陈明生于杭州，卒于上海，一说苏州。", "陈明生于杭州，卒于上海。"),
    ("乾隆是海宁陈家之子。学者早已驳斥此说。", "乾隆是海宁陈家之子。"),
    ("乾隆是海宁陈家之子，史家多不采信。", "乾隆是海宁陈家之子。"),
    ("所有员工每周休息两天，但保安只休一天。", "所有员工每周休息两天。"),
    ("The king was dead. Historians doubt this.", "The king was dead."),
    ("The town has 500 people. Correction: it has 600.", "The town has 500 people."),
    ("他于1975年逝世。今查档案，实为1976年。", "他于1975年逝世。"),
    ("公司已经破产，董事长说。", "公司已经破产。"),
    ("He wanted the town to burn.", "He wanted the town."),
    # What a sentence before it calls supposed or told holds for what follows.
    ("Suppose the following. Alice lends Bob 500 pounds.", "Alice lends Bob 500 pounds."),
    ("The following story is old. Karl killed the bear.", "Karl killed the bear."),
    ("以下是一则谣言。央行下调利率。", "央行下调利率。"),
    # What is neither named nor known makes another thing of what was done; who says so need not be introduced.
    ("The committee approved the plan in principle.", "The committee approved the plan."),
    ("Karl destroyed the town on a map.", "Karl destroyed the town."),
    ("The vaccine prevented infection in monkeys.", "The vaccine prevented infection."),
    ("He was a fool, Otto hinted.", "He was a fool."),
    ("Smoking is a cause of cancer.", "Smoking is the cause of cancer."),
    ("Most expensive houses burned in May.", "The most expensive houses burned in May."),
    ("He was a fool, claimed Otto.", "He was a fool."),
    ("He was a fool, Otto confessed to Anna.", "He was a fool."),
    ("The king was dead. The news was false.", "The king was dead."),
    ("52 percent voted for Otto.", "52 percent voted."),
    ("The act abolished slavery in the colonies.", "The act abolished slavery."),
    ("He was the chief judge in Acre.", "He was the chief judge."),
    ("The tower is 300 m high (projected).", "The tower is 300 m high."),
    ("Members (with a pass) may use the pool.", "Members may use the pool."),
    # A word, a number and a list are one.
    ("Anna was his sister-in-law.", "Anna was his sister."),
    ("5–10 people died in May.", "10 people died in May."),
    ("1966—1976年，全国高校停止招生。", "1976年，全国高校停止招生。"),
    ("该病潜伏期为3天—7天。", "该病潜伏期为3天。"),
    ("北京—上海航线全线停飞。", "上海航线全线停飞。"),
    ("五个常任理事国是中国、法国、俄罗斯、英国、美国。", "五个常任理事国是中国。"),
    ("该药治疗高血压，糖尿病，不在适应症之列。", "该药治疗高血压、糖尿病。"),
    # What stands in brackets makes another thing of it.
    ("He was elected (deputy) mayor of Lima.", "He was elected mayor of Lima."),
    ("他是（前）总统。", "他是总统。"),
    ("In 1914 (1915 in Italy) the war began.", "In 1915 the war began."),
    # Who or what it is said of is another one.
    ("South Korea is a republic. Korea was divided in 1945.", "South Korea was divided in 1945."),
    ("He joined Real Madrid in 2003.", "He joined Madrid in 2003."),
    ("He played Gaelic Football for Kerry.", "He played Football for Kerry."),
    ("The rating was cut to AA-.", "The rating was cut to AA+."),
    ("Ivanhoe is a novel by a Scottish lawyer. He died in 1832.", "Ivanhoe died in 1832."),
    ("With 4,000 men against him, Karl fled to the coast.", "Karl had 4,000 men."),
    ("Otto didn't kill Karl.", "Karl was killed."),
    ("Otto boasted he killed Karl.", "Karl was killed."),
    ("He was elected Lord Mayor of London.", "He was elected Mayor of London."),
    ("Vitamin A deficiency causes blindness.", "Vitamin deficiency causes blindness."),
    ("Section 5A applies to tenants.", "Section 5 applies to tenants."),
    ("Bonn was the capital of West Germany.", "Bonn is the capital of West Germany."),
    ("Growth was –2% in 2009.", "Growth was 2% in 2009."),
    ("Interest is 2 percent per year.", "Interest is 2 percent per century."),
    ("In 2019 sales were higher than in 2018.", "In 2018 sales were higher than in 2019."),
    ("In 1912 the bank hired a man who had robbed it.", "The bank hired a man who had robbed it in 1912."),
]


@pytest.mark.parametrize(("passage", "claim"), STANDS)
def test_a_clause_that_is_told_as_a_fact_stands_alone(passage, claim):
    assert restates(claim, passage) is not None


@pytest.mark.parametrize(("passage", "claim"), FALLS)
def test_a_clause_that_what_is_left_out_changes_does_not(passage, claim):
    assert restates(claim, passage) is None
