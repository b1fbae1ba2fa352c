"""What is only spelled otherwise is stated, and what differs in one thing is not."""

import pytest

from shiguan.claims.restatement import places

SAME = [
    # Contractions, and the words for nobody.
    ("The dam didn't break.", "The dam did not break."),
    ("Karl can’t sell the ship.", "Karl cannot sell the ship."),
    ("He won't sell the ship.", "He will not sell the ship."),
    ("It's the largest dam in Ohio.", "It is the largest dam in Ohio."),
    ("It's been sold to Otto.", "It has been sold to Otto."),
    ("They've sold the mill.", "They have sold the mill."),
    ("Nobody was injured in the blast.", "No one was injured in the blast."),
    ("None of the crew survived.", "No member of the crew survived."),
    ("Not one of the sailors survived.", "None of the sailors survived."),
    # Thousands, decimals, fractions and scales.
    ("The town has 12 500 inhabitants.", "The town has 12,500 inhabitants."),
    ("The town has 1 234 567 inhabitants.", "The town has 1,234,567 inhabitants."),
    ("The town has 12'500 inhabitants.", "The town has 12500 inhabitants."),
    ("The town has 12.500 inhabitants.", "The town has 12,500 inhabitants."),
    ("The fund grew to 1,2 billion euros.", "The fund grew to 1.2 billion euros."),
    ("The fund grew to €1.2bn in 2010.", "The fund grew to €1.2 billion in 2010."),
    ("The fund grew to €5m in 2010.", "The fund grew to €5 million in 2010."),
    ("It rose to 7.5% in 2009.", "It rose to 7.5 per cent in 2009."),
    ("The recipe needs 2½ cups.", "The recipe needs 2.5 cups."),
    ("The recipe needs 2 1/2 cups.", "The recipe needs two and a half cups."),
    # Chinese numbers in other figures.
    ("曹军有二十余万人。", "曹军有二十多万人。"),
    ("死者三千餘人。", "死者三千多人。"),
    ("王在位二十有八年。", "王在位二十八年。"),
    ("预算为4亿6千万元。", "预算为4.6亿元。"),
    ("预算为四亿六千万元。", "预算为4.6亿元。"),
    ("水费每吨二元三角五分。", "水费每吨2.35元。"),
    ("震级为六点五级。", "震级为6.5级。"),
    ("火灾发生在凌晨三点。", "火灾发生在凌晨3点。"),
    ("利率为百分之三点五。", "利率为3.5%。"),
    ("主队以三比一获胜。", "主队以3比1获胜。"),
    # British and American words, and units.
    ("The colour of the theatre was grey.", "The color of the theater was gray."),
    ("Otto travelled to the centre.", "Otto traveled to the center."),
    ("They organised the defence of Acre.", "They organized the defense of Acre."),
    ("The bridge is 3 km long.", "The bridge is 3 kilometres long."),
    # Abbreviations.
    ("Gen. Lee sold the mill.", "General Lee sold the mill."),
    ("Mt Everest is the highest one.", "Mount Everest is the highest one."),
    ("Acme Co. sold the mill.", "Acme Company sold the mill."),
    ("It is shown in Fig. 3.", "It is shown in Figure 3."),
    ("The U.S. Navy sold the ship.", "The US Navy sold the ship."),
    # Times of day, halves and dozens, and numbers of things.
    ("The meeting begins at 15:00.", "The meeting begins at 3 p.m."),
    ("The meeting begins at 3 p.m. on Monday.", "The meeting begins at 3pm on Monday."),
    ("The flight leaves at 9.15 a.m.", "The flight leaves at 09:15."),
    ("The flight leaves at 9:15 p.m.", "The flight leaves at 9:15."),
    ("会议下午三点半开始。", "会议15:30开始。"),
    ("事故发生于晚上8时20分。", "事故发生于20时20分。"),
    ("A dozen ships were lost in the storm.", "Twelve ships were lost in the storm."),
    ("Half a million people fled the city.", "500,000 people fled the city."),
    ("The journey took half an hour.", "The journey took 30 minutes."),
    ("车程为两个小时。", "车程为120分钟。"),
    ("He died on 5 May 1821.", "He died on the 5th of May, 1821."),
    ("The temperature was minus 20 degrees.", "The temperature was -20 degrees."),
    ("See Chapter IV for details of the method.", "See Chapter 4 for details of the method."),
    ("The Second World War ended in 1945.", "World War II ended in 1945."),
    ("World War One ended in 1918.", "World War I ended in 1918."),
    ("公司年产值二十多亿元。", "公司年产值20多亿元。"),
    ("二○一九年，该桥建成通车。", "2019年，该桥建成通车。"),
    ("The B.B.C. was founded in 1922.", "The BBC was founded in 1922."),
    ("J. R. R. Tolkien taught at Oxford.", "J.R.R. Tolkien taught at Oxford."),
    ("She took a Ph.D. in physics at Yale.", "She took a PhD in physics at Yale."),
    # Years of two figures.
    ("九八年夏天，长江发生洪水。", "1998年夏天，长江发生洪水。"),
    ("工程于05年动工，08年竣工。", "工程于2005年动工，2008年竣工。"),
    # Units of which one is an exact number of others.
    ("全长十二公里。", "全长十二千米。"),
    ("他体重七十公斤。", "他体重70千克。"),
    ("He was 1.80 m tall.", "He was 180 cm tall."),
    ("The trip took two weeks.", "The trip took 14 days."),
    ("The lake covers 30 sq km.", "The lake covers 30 square kilometres."),
]
OTHER = [
    ("The flight leaves at 9:15 a.m.", "The flight leaves at 9:15 p.m."),
    ("The flight leaves at 9:15 a.m.", "The flight leaves at 9:45."),
    ("会议下午三点开始。", "会议上午三点开始。"),
    ("会议下午三点半开始。", "会议下午三点开始。"),
    ("Dozens of ships were lost in the storm.", "Twelve ships were lost in the storm."),
    ("Half a million people fled the city.", "A million people fled the city."),
    ("The journey took half an hour.", "The journey took an hour."),
    ("车程为两小时。", "车程为两分钟。"),
    ("He died on 5 May 1821.", "He died on the 6th of May, 1821."),
    ("The temperature was minus 20 degrees.", "The temperature was 20 degrees."),
    ("See Chapter IV for details of the method.", "See Chapter 6 for details of the method."),
    ("The First World War ended in 1918.", "World War II ended in 1918."),
    ("The dam didn't break.", "The dam did break."),
    ("The dam did break.", "The dam didn't break."),
    ("Karl can't sell the ship.", "Karl can sell the ship."),
    ("It's been sold to Otto.", "It is been sold to Otto."),
    ("Nobody was injured in the blast.", "One was injured in the blast."),
    ("None of the crew survived.", "A member of the crew survived."),
    ("Not one of the sailors survived.", "One of the sailors survived."),
    ("The town has 12 500 inhabitants.", "The town has 12,600 inhabitants."),
    ("The town has 12 500 inhabitants.", "The town has 500 inhabitants."),
    ("On May 12 500 people died in Acre.", "On May 12,500 people died in Acre."),
    ("The mean was 3.142 in all tests.", "The mean was 3,142 in all tests."),
    ("The fund grew to €1.2bn in 2010.", "The fund grew to €1.2 million in 2010."),
    ("The fund grew to 5m in 2010.", "The fund grew to 5 million in 2010."),
    ("The recipe needs 2½ cups.", "The recipe needs 2 cups."),
    ("曹军有二十多万人。", "曹军有二十万人。"),
    ("王在位二十有八年。", "王在位二十九年。"),
    ("预算为4亿6千万元。", "预算为4.7亿元。"),
    ("水费每吨二元三角五分。", "水费每吨2.34元。"),
    ("震级为六点五级。", "震级为6级。"),
    ("下午三点五人来到洛阳城。", "下午3.5人来到洛阳城。"),
    ("利率为百分之四。", "利率为四。"),
    ("主队以三比一获胜。", "主队以3比2获胜。"),
    ("He filled the case in court.", "He filed the case in court."),
    ("He scoured the town of Acre.", "He scored the town of Acre."),
    ("The tower is 120 km high.", "The tower is 120 m high."),
    ("Gen. Lee sold the mill.", "Governor Lee sold the mill."),
    ("Acme Co. sold the mill.", "Acme Corporation sold the mill."),
    ("It is shown in Fig. 3.", "It is shown in Figure 4."),
    ("It is shown in Fig. 3.", "It is shown in Table 3."),
    ("The U.S. Navy sold the ship.", "The UK Navy sold the ship."),
    ("98年夏天，长江发生洪水。", "1997年夏天，长江发生洪水。"),
    ("公元98年夏天，长江发生洪水。", "1998年夏天，长江发生洪水。"),
    ("全长十二公里。", "全长十二米。"),
    ("He was 1.80 m tall.", "He was 181 cm tall."),
    ("The trip took two weeks.", "The trip took two days."),
    ("The lake covers 30 km².", "The lake covers 30 km."),
    ("The plant makes 30 MW in May.", "The plant makes 30 mW in May."),
]


@pytest.mark.parametrize(("passage", "claim"), SAME)
def test_another_spelling_is_stated(passage, claim):
    assert next(places(claim, passage), None)
    assert next(places(passage, claim), None)


@pytest.mark.parametrize(("passage", "claim"), OTHER)
def test_another_thing_is_not_stated(passage, claim):
    assert next(places(claim, passage), None) is None
