"""A claim is stated by a passage if it stands there, or in a form that changes nothing; else it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.restatement import restates

WAR = (
    "In 757 An Lushan was murdered by An Qingxu. Helan Jinming gave Nan Jiyun a banquet and no soldiers. Nan Jiyun shot "
    "Yin Ziqi in the left eye. In the winter of 755 the rebels took Luoyang with 150,000 men, and the court fled. No "
    "soldiers ever reached Suiyang. The relieving army arrived three days after the fall. Shi Siming was murdered by "
    "officers of Shi Chaoyi. If the rebels had crossed the river, all was lost. Guo Ziyi defeated the rebel army's "
    "rearguard. The son of Zhang Xun was executed in 762."
)
CLASSICAL = (
    "天宝十四载十一月，安禄山反于范阳，众十五万。至德二载，安禄山为安庆绪所杀。郭子仪、李光弼自河北引兵还，肃宗以子仪为司空。"
    "叛军攻陷洛阳城外粮仓。李光颜讨淮西，多破贼。史思明不肯降。"
)
STATED = [
    (WAR, "An Lushan was murdered by An Qingxu in 757."),
    (WAR, "An Qingxu murdered An Lushan."),
    (WAR, "Yin Ziqi was shot in the left eye."),
    (WAR, "Helan Jinming gave Nan Jiyun a banquet."),
    (WAR, "The rebels took Luoyang in 755."),
    (WAR, "The rebels took Luoyang in the winter of 755."),
    (WAR, "Yes, the rebels took Luoyang with a hundred and fifty thousand men."),
    (WAR, "The rebels took Luoyang."),
    ("An Qingxu slew An Lushan.", "An Lushan was slain by An Qingxu."),
    ("Karl fled, but Otto did not.", "Karl fled."),
    ("In 1778, Karl fled. Otto stayed.", "In 1778 Karl fled."),
    ("The army took the town with no losses.", "The army took the town."),
    ("The army took the town with no losses.", "The army took the town."),
    (WAR, "No soldiers ever reached Suiyang."),
    (WAR, "Nan Jiyun shot Yin Ziqi in the left eye, and the relieving army arrived three days after the fall."),
    ("Otto built the wall. Karl was wrong. This is true.", "Otto built the wall."),
    ("In fact, Otto was the richest man.", "Otto was the richest man."),
    ("The largest ship became the first prize in 1310.", "The largest ship became the first prize."),
    ("A few settlers died in May.", "A few settlers died."),
    ("The museum is open daily, but nobody visits it.", "The museum is open daily."),
    ("When the king died, the queen could sell the house.", "The queen could sell the house."),
    ("The brave captain Otto led the army.", "Otto led the army."),
    ("The captain sold the ship when the king was dead.", "The captain sold the ship."),
    ("Otto's was the richest house, and the largest ship sank in Acre.", "The largest ship sank in Acre."),
    ("The museum is open ~~every day~~ on Sundays.", "The museum is open on Sundays."),
    ("Otto built the wall of Acre. Except for Karl, all fled.", "Otto built the wall of Acre."),
    ("The loop runs while count==limit holds.", "The loop runs while count == limit holds."),
    ("The plant weighs 5 KG and the well-known heir - Otto - fled.", "The plant weighs 5kg."),
    (CLASSICAL, "安祿山反於范陽。"),
    (CLASSICAL, "755年十一月，安禄山反于范阳。"),
    (CLASSICAL, "安庆绪杀安禄山。"),
    (CLASSICAL, "肃宗以郭子仪为司空。"),
    (CLASSICAL, "史思明不肯降，李光颜讨淮西。"),
    ("John Mayow (1641–1679) refined this work (in Oxford) with care.", "John Mayow refined this work with care."),
    ("It fell. That’s what the court was told of Suiyang.", "that's what the court was told of Suiyang."),
    ("The king gave them land, saying that all was lost.", "The king gave them land."),
    ("He came to Rome with Dan, wrote his books there, and died.", "He came to Rome with Dan."),
    ("安禄山反于范阳，其众据洛阳。", "安禄山反于范阳。"),
    ("李光弼入长安城，除太尉。", "李光弼入长安城。"),
    ("李白入长安城，人称谪仙。", "李白入长安城。"),
    ("普通货柜最大毛重（包括高立方型）30480公斤。", "普通货柜最大毛重30480公斤。"),
    (
        "The church was rebuilt in stone by Karl Hale after the fire.",
        "Karl Hale rebuilt the church in stone after the fire.",
    ),
    ("Some 16.2 percent of them fled to Acre.", "Some 16.2% of them fled to Acre."),
    ("Joe Hale came to Acre. Hale was raised as a monk.", "Joe Hale was raised as a monk."),
    ("Guatemala and Honduras joined the union in 1990.", "In 1990 Guatemala and Honduras joined the union."),
    ("Otto wrote ten books, and Karl burned nine of them.", "Karl burned nine of them."),
    ("“I am ill,” said Otto, and the queen left Acre.", "The queen left Acre."),
    ("帝曰：“善。”乃以王渊为洛阳令。", "以王渊为洛阳令。"),
    ("渊抽刀而言曰：“上以谢君父，下以示三军。”遂死。", "“上以谢君父，下以示三军”。"),
    ("Otto claimed: “Karl burned nine books in Acre.”", "“Karl burned nine books in Acre.”"),
    ("The “iron king” of Parma fled to Acre.", "The iron king of Parma fled to Acre."),
    ("The king, known as Otto, fled to Acre.", "The king fled to Acre."),
    ("高车有部落十馀万，役属柔然。", "高车有部落十余万。"),
    ("魏以李崇为刺史。崇，显祖之舅子也。", "李崇，显祖之舅子也。"),
    ("He left because Karl had burned the town of Acre.", "Karl had burned the town of Acre."),
    ("The study showed that Karl fled and that Otto stayed in Acre.", "Otto stayed in Acre."),
    ("Although Otto fled to Acre, Karl stayed.", "Otto fled to Acre."),
    ("Otto then fled to Acre.", "Otto fled to Acre."),
    ("However, his friend was killed by Otto and Karl.", "Otto and Karl killed his friend."),
    ("In the north, the Whigs are the largest party.", "The Whigs are the largest party in the north."),
    ("According to Hale, wealth is linked with growth.", "Wealth is linked with growth, according to Hale."),
    ("Wealth is linked with growth, according to Hale.", "According to Hale, wealth is linked with growth."),
    (
        "They feared the Ikh Zasag (Great Rule), the first Mongol law.",
        "The Ikh Zasag (Great Rule) was the first Mongol law.",
    ),
    # What is said of somebody whom the passage names elsewhere in it.
    ("He met Karl Hale, who had burned the town.", "Karl Hale had burned the town."),
    ("Groups are arranged in superclusters, which are not bound.", "Superclusters are not bound."),
    ("The Lucas test, which always ends, is slow.", "The Lucas test always ends."),
    ("Karl came to Acre, took the town, and was killed in May.", "Karl was killed in May."),
    ("The ill-fated Otto Hale was born in Acre, and fell in Rome.", "Otto Hale fell in Rome."),
    ("Karl Hale is a German singer. In 1300, he left Acre.", "Karl Hale left Acre in 1300."),
    ("Acre is a town in Syria. It lies near Tyre. It has a wall of stone.", "Acre has a wall of stone."),
    ("The French explorer Karl Hale charted the river in 1562.", "Karl Hale charted the river in 1562."),
    ("The cells froze at −20 °C in Acre.", "Cells froze at -20 °C in Acre."),
    ("The chief mate of the Pequod was Starbuck.", "Starbuck was the chief mate of the Pequod."),
    ("Starbuck was the chief mate of the Pequod.", "The chief mate of the Pequod was Starbuck."),
    ("| 757 | An Lushan murdered by An Qingxu |", "An Qingxu murdered An Lushan."),
    ("Philip II of Spain ordered Otto Hale to go home.", "Otto Hale was ordered by Philip II of Spain to go home."),
    ("He was made aware that the French were massing in Acre.", "The French were massing in Acre."),
    ("After a raid that overthrew Karl, Otto and Hale received Acre.", "Otto and Hale received Acre."),
    # What is said of its subject in front of a clause or in passing, and of each of several.
    ("Born in Acre in 1300, Karl Hale rose to lead the fleet.", "Karl Hale was born in Acre in 1300."),
    ("Otto Hale, raised in Acre, became a judge.", "Otto Hale was raised in Acre."),
    ("Acre, with a population of 4,000, was burned.", "Acre had a population of 4,000."),
    ("Karl, Otto and Hale besieged Acre in 1300.", "Otto besieged Acre in 1300."),
    ("Karl and Otto were wounded near Acre.", "Karl was wounded near Acre."),
    # Dates at the other end of a clause, and numbers in another unit.
    ("From 1893 to 1938 Acre was the site of the home.", "Acre was the site of the home from 1893 to 1938."),
    ("There was unrest in 1962, when Karl's men took Acre.", "In 1962 Karl's men took Acre."),
    ("In 1949, as the troops advanced, Karl moved it to Acre.", "Karl moved it to Acre in 1949."),
    ("It uses approx. 4 kg (8.8 lb) of steam.", "It uses about 4 kg (8.8 lb) of steam."),
    ("Its 209-acre (85 ha) yard is 3 miles (5 km) west of Acre.", "Its 209-acre yard is 5 km west of Acre."),
    ("Take 5mg of it at night.", "Take 5 mg of it at night."),
    ("In the 1960s Otto ruled, the 3rd king of Acre.", "In the 1960s Otto ruled, the third king of Acre."),
    ("The duke planned the wall and hopes to stop there.", "The duke plans the wall and hoped to stop there."),
    ("Otto did not sell the mill but burned it in May.", "Otto did not sell the mill."),
]
CHANGED = [
    ("渊抽刀而言曰：“上以谢君父，下以示三军。”遂死。", "上以谢君父，下以示三军。"),
    ("Otto claimed: “Karl burned nine books in Acre.”", "Karl burned nine books in Acre."),
    ("Otto claimed: “Karl burned nine books in Acre.”", "“Otto burned nine books in Acre.”"),
    (WAR, "An Lushan murdered An Qingxu."),
    (WAR, "An Qingxu murdered An Lushan in 755."),
    (WAR, "Helan Jinming gave Nan Jiyun soldiers."),
    (WAR, "Yin Ziqi shot Nan Jiyun in the left eye."),
    (WAR, "The rebels took Luoyang in the summer of 755."),
    (WAR, "The rebels took Luoyang with 150 men."),
    (WAR, "Soldiers ever reached Suiyang."),
    (WAR, "The relieving army arrived three days before the fall."),
    (WAR, "Shi Siming was murdered by Shi Chaoyi."),
    (WAR, "Shi Chaoyi murdered Shi Siming."),
    (WAR, "The rebels had crossed the river."),
    (WAR, "Guo Ziyi defeated the rebel army."),
    (WAR, "Zhang Xun was executed in 762."),
    ("Guo Ziyi felt the blow at Luoyang.", "Guo Ziyi fell the blow at Luoyang."),
    ("He founded the burning town of Luoyang.", "He found the burning town of Luoyang."),
    (CLASSICAL, "安禄山杀安庆绪。"),
    (CLASSICAL, "天宝十四载十一月，安禄山反于范阳，众十五。"),
    (CLASSICAL, "肃宗以李光弼为司空。"),
    (CLASSICAL, "叛军攻陷洛阳。"),
    (CLASSICAL, "李光进讨淮西，多破贼。"),
    (CLASSICAL, "史思明肯降。"),
    ("如果安禄山反，洛阳必陷于贼。", "洛阳必陷于贼。"),
    # Surnames that are words: should, all, often.
    ("史思明应降于唐军。", "史思明降于唐军。"),
    ("田承嗣全投降朝廷。", "田承嗣投降朝廷。"),
    ("朝廷常赦免田悦。", "朝廷赦免田悦。"),
    ("Nan Jiyun (allegedly) shot Yin Ziqi in the eye.", "Nan Jiyun shot Yin Ziqi in the eye."),
    ("Nan Jiyun (it is said) shot Yin Ziqi in the eye.", "Nan Jiyun shot Yin Ziqi in the eye."),
    ("The rebels lost 5 (thousand) men at Suiyang.", "The rebels lost 5 men at Suiyang."),
    ("史思明（未）降于唐。", "史思明降于唐。"),
    # Who does it, and whether it is done at all.
    ("The monk was burying the king near Acre.", "The monk was buried the king near Acre."),
    ("They left the valley without killing Karl Reed in his house.", "Karl Reed was killed in his house."),
    ("Neither side recognised Karl Hale as king.", "Karl Hale was recognised as king."),
    ("Karl Hale was said to be loved in Acre by Otto.", "Otto said Karl Hale to be loved in Acre."),
    ("None of the 20 ships reached the harbour.", "Ships reached the harbour."),
    ("Between 300 and 500 men died in Acre.", "500 men died in Acre."),
    ("He was third in line for the throne.", "He was three in line for the throne."),
    ("高车有部落十馀万，役属柔然。", "高车有部落十万。"),
    ("高车有部落十万，役属柔然。", "高车有部落十余万。"),
    ("The duke burned the towns near Acre.", "The duke burned the town near Acre."),
    ("Otto would have taken the town but for Karl.", "Otto would have taken the town."),
    ("Otto was king of Parma until 1310.", "Otto was king of Parma."),
    ("Otto led all of them, before Karl came.", "Otto led all of them."),
    # Active and passive: who else did it, whom it hit.
    ("Otto killed Karl and Hale.", "Karl was killed by Otto and Hale."),
    ("Karl was killed by Otto and Hale.", "Otto killed Karl and Hale."),
    ("Drugs are a common cause in developed countries.", "Drugs are a common cause in developing countries."),
    ("In Acre, Karl said Otto fled to Rome.", "Karl said Otto fled to Rome in Acre."),
    ("According to Hale, wealth is linked with growth (not its rate).", "Wealth is linked with growth."),
    ("In Acre, Otto fled to Rome and died.", "Otto fled to Rome and died in Acre."),
    # Since a year, in its decade, before the era.
    ("The city has had only one flood since 1871.", "In 1871 the city has had only one flood."),
    ("In the 1960s Otto ruled the town.", "In 1960 Otto ruled the town."),
    ("In 44 BC Otto took the town.", "In 44 Otto took the town."),
    ("The wall was built at a cost of 5 to 10 million.", "The wall was built at a cost of 5."),
    ("The war lasted a year and a half in Acre.", "The war lasted a year."),
    # A short clause is another's, too.
    ("Karl fled, but Otto did not.", "Otto fled."),
    ("Had Karl fled, Otto would have stayed.", "Karl fled."),
    ("The men of Karl fled. Otto stayed.", "Karl fled."),
    ("The younger Karl Hale fled. Otto stayed.", "Karl Hale fled."),
    ("The captain gave the money to nobody.", "The captain gave the money."),
    # Another place of nearly the same name.
    ("The ship reached Equatorial Guinea in May.", "The ship reached Guinea in May."),
    ("They settled in British Columbia in May.", "They settled in Columbia in May."),
    ("He met the wife of Karl Hale, a singer.", "Karl Hale was a singer."),
    # What is said of several together is not said of the last of them, nor is half of a name a name.
    ("Karl and Otto were brothers of Hale.", "Otto were brothers of Hale."),
    ("Karl and Otto had 300 men in Acre.", "Otto had 300 men in Acre."),
    ("Karl, Otto and Hale met in Acre in 1300.", "Otto and Hale met in Acre in 1300."),
    ("Karl and Hale Steel was sold in 1980.", "Hale Steel was sold in 1980."),
    ("Karl was ill. After Otto took Acre, he died there.", "After Otto took Acre, Karl died there."),
    # What came after what, and what is not said to be so.
    ("Otto burned Acre in May. Karl fled to Rome in June.", "Karl fled to Rome in June, then Otto burned Acre in May."),
    ("He fled not because Karl had burned the town but from fear.", "Karl had burned the town."),
    ("He will leave when Karl comes to Acre with his men.", "Karl comes to Acre with his men."),
    ("They demanded that Otto leave and Karl burn the town.", "Karl burned the town."),
    ("Rumours spread that Karl was dead and his son had fled to Acre.", "His son had fled to Acre."),
    ("The story goes that, in 1300, Otto killed the dragon.", "Otto killed the dragon."),
    ("Otto died in Acre in 1300, it is assumed.", "Otto died in Acre in 1300."),
    ("In Hale's view, the duke lost the town of Acre.", "The duke lost the town of Acre."),
    ("The men fled to Acre with Karl?", "The men fled to Acre."),
    # What follows takes from it.
    ("Otto was king of Acre in all but name.", "Otto was king of Acre."),
    ("All ships sank in the storm with one exception.", "All ships sank in the storm."),
    ("Karl lost all his sons in the war but one.", "Karl lost all his sons in the war."),
    ("The duke rules the town in the event of war.", "The duke rules the town."),
    # Opinions, quoted speech, conditions, limits.
    ("He said that Karl was rich and that Otto had stolen the relics.", "Otto had stolen the relics."),
    ("It is possible that Otto died and Karl fled to Acre.", "Karl fled to Acre."),
    ("Otto said: “Karl fled. The bishop took the gold.” He wept.", "The bishop took the gold."),
    ("“Karl has fled to Acre. He took the gold,” said Otto.", "Karl has fled to Acre."),
    ("Were the bishop to die, the duke would rule Acre.", "The duke would rule Acre."),
    ("In such a case, the house chooses the king.", "The house chooses the king."),
    ("Apart from Otto, nobody reached the town of Acre.", "Nobody reached the town of Acre."),
    ("In his dream, Otto killed the king of Acre.", "Otto killed the king of Acre."),
    ("谐之谮于上曰：“柏年恃险聚众，欲据一州。”", "柏年恃险聚众，欲据一州。"),
    ("李信对王渊说，张成已降突厥。", "张成已降突厥。"),
    ("根据史家的著作，他们杀死了七万多人。", "他们杀死了七万多人。"),
    ("假使当日出兵，赵军必败于长平。", "赵军必败于长平。"),
    ("诸将皆降突厥，唯王渊不降。", "诸将皆降突厥。"),
    ("除王渊外，诸将皆降突厥。", "诸将皆降突厥。"),
    ("No captain and sailor saw the coast of Acre.", "Sailor saw the coast of Acre."),
    ("Otto did not sell and burn the town of Acre.", "Burn the town of Acre."),
    ("Did Otto build the wall? He did not.", "Did Otto build the wall."),
    ("Otto built the wall of Acre in a film.", "Otto built the wall of Acre."),
    ("小说里，王渊守潼关三年。", "王渊守潼关三年。"),
    ("王渊守潼关三年，此说不可信。", "王渊守潼关三年。"),
    ("王渊恐李信死，张成降突厥，乃还。", "张成降突厥。"),
    # Another one of the name, another country, two sentences as one.
    ("Hale was born in Acre, the son of Joe Hale. Hale fled.", "Joe Hale was born in Acre."),
    ("Joe Hale came with Kim Hale. Later Hale fled to Acre.", "Later Joe Hale fled to Acre."),
    ("In 1950 North Korea invaded South Korea.", "In 1950 North Korea invaded Korea."),
    ("In 1950 Vice President Hale signed the treaty.", "In 1950 President Hale signed the treaty."),
    ("He met Otto. Karl fled from Acre with him.", "Otto Karl fled from Acre with him."),
    ("Otto (or Karl) fled to Acre in May.", "Otto fled to Acre in May."),
    ("All (but two) of the ships sank in May.", "All of the ships sank in May."),
    # That one thing made the other is a claim of its own.
    ("Otto fled to Acre in May. Karl ruled Tyre.", "Otto fled to Acre in May, because Karl ruled Tyre."),
    ("王渊守潼关三年。李信降于突厥。", "王渊守潼关三年，故李信降于突厥。"),
    # A date of another clause, a duration, a beginning.
    ("In 1556 the duke ruled Parma.", "Since 1556 the duke ruled Parma."),
    ("The duke was crowned in 1556 and died in Parma.", "The duke was crowned and died in Parma in 1556."),
    ("The town which Otto took in 1310 was lost in 1320.", "The town which Otto took was lost in 1310."),
    ("王渊攻洛阳三月，克之。", "王渊三月攻洛阳，克之。"),
    ("元和三年，王渊守潼关。", "王渊守潼关三年。"),
    ("王渊于1368年入洛阳，李信于1399年死。", "王渊入洛阳，李信于1368年死。"),
    # Who it was that did so is another one, or not certain.
    ("He met the wife of Karl Hale, who had burned the town.", "Karl Hale had burned the town."),
    ("He met Karl and the king, who left in May.", "The king left in May."),
    ("They use the Rabin test, and the Lucas test, which is fast.", "The Lucas test is fast."),
    ("He opened the old chest, which was a mistake.", "The old chest was a mistake."),
    ("A house was built in Austin, Texas, which opened in May.", "Texas opened in May."),
    ("He met a man from the United States, who left in May.", "States left in May."),
    ("A band of Acre, New York, who play doom, left.", "New York play doom."),
    ("No ship, which sank, was found in Acre.", "Ship sank in Acre."),
    ("In the novel, Karl met Otto Hale, who burned the town.", "Otto Hale burned the town."),
    ("They use the Miller–Rabin test, which is fast.", "The Rabin test is fast."),
    ("It was named after M. Theo Hale, which lies in Acre.", "Theo Hale lies in Acre."),
    ("Karl fled, Otto took the town, and was killed in May.", "Karl was killed in May."),
    ("Karl saw that Otto fled and took the town.", "Karl took the town."),
    ("If x > 0 the call ends, and p<5 holds.", "If x < 0 the call ends."),
    ("The error is ≤ 5 metres in Acre.", "The error is ≥ 5 metres in Acre."),
    ("The engine is written in C++ and Python.", "The engine is written in C."),
    ("The tools are written in C# and Python.", "The tools are written in C."),
    ("The cells froze at −20 °C in Acre.", "The cells froze at 20 °C in Acre."),
    ("Karl Hale resigned, and his deputy, Ann Low, took over.", "Karl Hale took over."),
    ("Karl, helped by his wife, Ann, fled, while Otto, her brother, agreed to sign.", "Karl agreed to sign."),
    ("The chairman, Karl Hale, resigned, and his deputy, Ann Low, took over.", "Karl Hale took over."),
    ("Karl Hale fled, and Otto, his heir, took the town and was killed.", "Karl Hale took the town."),
    ("Karl did not flee and took no town of Otto.", "Karl took no town of Otto."),
    ("Karl led sailors and wounded men of Otto.", "Karl wounded men of Otto."),
    ("The council was held in the old church, called the mother of all.", "The council called the mother of all."),
    ("Otto's men burned the town of Karl Hale.", "Karl Hale was a men of Otto."),
    ("The men of Karl Hale charted the river in 1562.", "Karl Hale charted the river in 1562."),
    ("Karl was the son of Hale. He left the town.", "Karl left the town."),
    ("Otto came. Acre was a town. He took it in May.", "Acre took it in May."),
    ("Otto was a singer. His son died. It was a sad day.", "Otto was a sad day."),
    ("He left. Karl was a king. He died in Acre.", "Karl died in Acre."),
    ("His brother was ill. Karl was a king. He died in Acre.", "Karl died in Acre."),
    ("He said he met Otto, who had burned the town.", "Otto had burned the town."),
    ("Was Karl killed by Otto, who had burned the town?", "Otto had burned the town."),
    ("The mate of the Pequod was Starbuck, it is said.", "Starbuck was the mate of the Pequod."),
    ("Starbuck was a mate of the Pequod.", "The mate of the Pequod was Starbuck."),
    ("| 757 | An Lushan murdered by An Qingxu |", "An Lushan murdered An Qingxu."),
    ("Karl Hale stopped by Acre.", "Acre stopped Karl Hale."),
    ("He was not aware that the French were massing in Acre.", "The French were massing in Acre."),
    ("They tried to prove that Karl fled to Acre.", "Karl fled to Acre."),
    ("Otto ruled the town of Acre at first.", "Otto ruled the town of Acre."),
    ("At first, Otto ruled the town of Acre.", "Otto ruled the town of Acre."),
    ("From 1893 to 1938 Acre was the site of the home.", "Acre was the site of the home in 1938."),
    ("In 1893 Acre was the site of the home.", "Acre was the site of the home from 1893."),
    ("In 1968 Otto fled, and Karl Hale took the town.", "Karl Hale took the town in 1968."),
    ("In 1949, after the fall of 1945, Karl moved it to Acre.", "Karl moved it to Acre in 1945."),
    ("The river flows 109 miles (175 km) south.", "The river flows 175 miles south."),
    # What is written to a number without a space.
    ("Take 5mg of it at night.", "Take 5g of it at night."),
    ("The sample held 10⁵ cells of Acre.", "The sample held 10³ cells of Acre."),
    ("The mill is at 12A Hale Street.", "The mill is at 12B Hale Street."),
    # Operators, signs and units that differ in little more than a stroke.
    ("The loop runs while count == limit holds.", "The loop runs while count != limit holds."),
    ("The loop runs while x && y holds.", "The loop runs while x || y holds."),
    ("The flag --v prints its version.", "The flag -v prints its version."),
    ("The plant makes 5 MW of power.", "The plant makes 5 mW of power."),
    ("It sold for 100 £ a piece.", "It sold for 100 $ a piece."),
    ("The set A ∪ B is open.", "The set A ∩ B is open."),
    # Words that differ in an e, or in a doubled letter.
    ("Jan founded the school of Acre.", "Jane founded the school of Acre."),
    ("Otto drew the plan of the mill.", "Otto drew the plane of the mill."),
    ("The monks robed the king at dawn.", "The monks robbed the king at dawn."),
    ("The duke granted human rights to Acre.", "The duke granted humane rights to Acre."),
    # What is denied, allowed or said of only one is so with all that follows.
    ("Otto did not sell the mill to Karl.", "Otto did not sell the mill."),
    ("Hale didn't die in 1790 of the fever.", "Hale didn't die in 1790."),
    ("No one may sell wine on Sundays.", "No one may sell wine."),
    ("The tenant may keep dogs in the garden.", "The tenant may keep dogs."),
    ("Only Otto fought with Karl in Acre.", "Only Otto fought with Karl."),
    ("张志远未毕业于中央大学。", "张志远未毕业。"),
    ("Do **not** drink the water of the spring.", "Drink the water of the spring."),
    ("The museum is open ~~every day~~ on Sundays.", "The museum is open every day."),
    ("The duke rules the town in May, if the king agrees.", "The duke rules the town."),
    # What is most or first only of those among which it is; few for a few.
    ("The Volga is the longest river in the union.", "The Volga is the longest river."),
    ("In the union, the Volga is the longest river.", "The Volga is the longest river."),
    ("Few settlers survived the winter.", "A few settlers survived the winter."),
    # What the next words call untrue, or not so of all; what is asked, in the other voice.
    ("Otto built the wall of Acre in 1300. This, however, is not true.", "Otto built the wall of Acre."),
    ("Otto built the wall of Acre. (False)", "Otto built the wall of Acre."),
    ("Karl was killed by Otto. That is false.", "Otto killed Karl."),
    ("Karl was killed by Otto?", "Otto killed Karl."),
    ("All members may vote in May, with the exception of students.", "All members may vote."),
    ("The museum is open every day. Mondays are excepted.", "The museum is open every day."),
    # What is said of all, with those of whom it is not so; the most of some, with what they are.
    ("The museum is open daily (closed Mondays).", "The museum is open daily."),
    ("The museum is open daily, but not on Mondays.", "The museum is open daily."),
    ("All members may vote, but students may not.", "All members may vote."),
    ("No dogs are allowed, but guide dogs are.", "No dogs are allowed."),
    ("Nobody was hurt, but for two sailors.", "Nobody was hurt."),
    ("The Marigold was the largest ship built in Acre.", "The Marigold was the largest ship built."),
    # What is shown in a play or was undone, so in one case only, or of those who were studied; another in place of him.
    ("The play shows how Karl murdered his brother.", "Karl murdered his brother."),
    ("Karl was elected in May, but the election was annulled.", "Karl was elected in May."),
    ("Where the tenant is absent, the landlord may enter.", "The landlord may enter."),
    ("The drug reduces pain in mice.", "The drug reduces pain."),
    ("The function raises ValueError when the list is empty.", "The function raises ValueError."),
    ("Karl rather than Otto led the army.", "Otto led the army."),
]

# A passage that says the claim with something between commas, which the claim leaves out.
LEFT_OUT = [
    ("Every year the town (which had no walls) held a fair.", "Every year the town held a fair."),
    ("The king, who had returned from the north, gave them land.", "The king gave them land."),
    ("An Lushan, the governor of Fanyang, rebelled in 755.", "An Lushan rebelled in 755."),
    ("Shi Siming, a friend of An Lushan, took Luoyang again.", "Shi Siming took Luoyang again."),
    ("The town, in the east of modern Henan, was taken in 757.", "The town was taken in 757."),
    ("The army, having crossed the river, burned the granary.", "The army burned the granary."),
    ("The general, wounded by an arrow, fled to the hills.", "The general fled to the hills."),
    ("The king, however, kept the town.", "The king kept the town."),
    (
        "He fought against the rebels, whose leader was dead, for ten months.",
        "He fought against the rebels for ten months.",
    ),
    ("The emperor — a man of seventy — left the capital at dawn.", "The emperor left the capital at dawn."),
    ("Xu Yuan, 48, defended the town with him.", "Xu Yuan defended the town with him."),
    ("The town, which lies on the Seine, is old and small.", "The town is old and small."),
    ("The king, by the advice of his mother, in the spring of 755, opened the gates.", "The king opened the gates."),
    ("李愬，字元直，洮州临潭人，讨淮西有功。", "李愬讨淮西有功。"),
    ("元和十二年，李愬，晟之子也，入蔡州城。", "元和十二年李愬入蔡州城。"),
    ("郭子仪，安禄山反后，率军东讨。", "郭子仪率军东讨。"),
]
SAID_IN_PASSING = [
    ("An Lushan, the governor of Fanyang, rebelled in 755.", "An Lushan was the governor of Fanyang."),
    ("The town was held by Xu Yuan, governor of Suiyang.", "Xu Yuan was the governor of Suiyang."),
    ("In 757 An Lushan's son An Qingxu took the throne.", "An Qingxu was a son of An Lushan."),
    ("1986年，戚务生成为主教练，1989年转而执教大连队。", "戚务生于1986年成为主教练，1989年转而执教大连队。"),
    ("石山麟于1985年创立集团，此前他在狱中十年。", "1985年，石山麟创立集团，此前他在狱中十年。"),
]
NOT_SAID_IN_PASSING = [
    ("He met An Lushan, the governor of Fanyang, and Shi Siming.", "An Lushan was the governor of Fanyang."),
    ("In the war with Bob, the king of Rome fled.", "Bob was the king of Rome."),
    ("It was based on a tale by Karl Hale, the first film of that tale.", "Karl Hale was the first film of that tale."),
    ("They built it on the Upper Ness, the largest farm of wind.", "Upper Ness was the largest farm of wind."),
    ("If Bob, the king of Rome, had fled, all was lost.", "Bob was the king of Rome."),
    ("An Lushan, once governor of Fanyang, rebelled in 755.", "An Lushan was governor of Fanyang."),
    ("Old An Lushan, the governor of Fanyang, fled.", "Lushan was the governor of Fanyang."),
    ("In 757 An Lushan's son An Qingxu took the throne.", "An Lushan was a son of An Qingxu."),
    ("In 757 An Lushan's son An Qingxu Minor fled.", "An Qingxu was a son of An Lushan."),
    ("Zhao An Lushan's son An Qingxu fled.", "An Qingxu was a son of An Lushan."),
    ("石山麟于1985年前创立集团，此前他在狱中十年。", "1985年，石山麟创立集团，此前他在狱中十年。"),
    ("石山麟于1985年创立集团，安禄山于1986年退役。", "1985年，安禄山退役，石山麟创立集团。"),
    ("1985年石山麟创立集团至1989年解散。", "石山麟于1989年创立集团。"),
]
# What is left out denies, doubts, limits or attributes it, or what is left has another subject.
NOT_LEFT_OUT = [
    ("The king, it is said, gave them land.", "The king gave them land."),
    ("The king, according to Bede, gave them land.", "The king gave them land."),
    ("The king, the chronicler claimed, gave them land.", "The king gave them land."),
    ("The king, if his mother agreed, gave them land.", "The king gave them land."),
    ("The king, in a dream, gave them land.", "The king gave them land."),
    ("The king, or perhaps his son, gave them land.", "The king gave them land."),
    ("The king, almost certainly, gave them land.", "The king gave them land."),
    ("The whole fleet, except three ships, was sunk there.", "The whole fleet was sunk there."),
    ("All soldiers, who had deserted, were put to death.", "All soldiers were put to death."),
    ("No one, but the king, gave them land.", "No one gave them land."),
    ("Bristol, after London, was the largest of the ports.", "Bristol was the largest of the ports."),
    ("A man, who hates music, is fit for treason.", "A man is fit for treason."),
    ("The king fled, the queen stayed, and was killed there.", "The king fled and was killed there."),
    ("The king fled, Bob pursued, was killed there.", "The king fled, was killed there."),
    ("He attacked, after Bob, Dan's son, had come.", "He attacked Dan's son."),
    ("He met the king, who had fled, and was killed.", "He met the king and was killed."),
    ("The king, Bob, and Dan were the only heirs.", "The king and Dan were the only heirs."),
    ("In 1996, a movement of students, rose to power, and left.", "In 1996 rose to power."),
    ("Bob, the queen was told, fled to the hills.", "Bob fled to the hills."),
    ("The king, who is dead; the queen gave them land.", "The king gave them land."),
    ("Zhang Xun, with one in ten of the men, reached Suiyang. The rebels, who lost, fled.", "Zhang Xun fled."),
    ("安禄山，郭子仪讨之，陷洛阳城。", "安禄山陷洛阳城。"),
    ("安禄山，或言史思明之友，陷洛阳城。", "安禄山陷洛阳城。"),
    ("安禄山反，史思明之子，陷洛阳城。", "安禄山反陷洛阳城。"),
    ("The king gave them land, according to legend.", "The king gave them land."),
    ("The king gave them land, he claimed.", "The king gave them land."),
    ("The king gave them land, if they fought for him.", "The king gave them land."),
    ("The king gave them land, but this is disputed.", "The king gave them land."),
    ("Zhang Xun lost all but two of the ships.", "Zhang Xun lost all."),
    ("He was king of the north in name only.", "He was king of the north."),
    ("Reportedly the king gave them land.", "The king gave them land."),
]


@pytest.mark.parametrize(("passage", "claim"), LEFT_OUT + SAID_IN_PASSING)
def test_an_aside_may_be_left_out_or_stand_alone(passage, claim):
    assert restates(claim, passage) is not None


@pytest.mark.parametrize(("passage", "claim"), NOT_LEFT_OUT + NOT_SAID_IN_PASSING)
def test_what_changes_the_statement_may_not_be_left_out(passage, claim):
    assert restates(claim, passage) is None


@pytest.mark.parametrize(("passage", "claim"), STATED)
def test_what_changes_nothing_is_stated(passage, claim):
    found = restates(claim, passage)
    assert found is not None
    assert 0 <= found[0] < found[1] <= len(passage)


@pytest.mark.parametrize(("passage", "claim"), CHANGED)
def test_one_small_change_is_not_stated(passage, claim):
    assert restates(claim, passage) is None


def test_the_place_is_where_it_is_stated():
    start, end = restates("An Qingxu murdered An Lushan.", WAR)
    assert WAR[start:end] == "An Lushan was murdered by An Qingxu"


@given(st.text(), st.text() | st.text(alphabet="ab cd.。史安祿山十一23 不not"))
def test_any_texts_give_a_place_or_none(claim, passage):
    found = restates(claim, passage)
    assert found is None or 0 <= found[0] < found[1] <= len(passage)


@pytest.mark.parametrize(
    "unit", ["哈", "in 1778 ", "An An ", "a b ", "被", "安禄山", "x, who a, ", "An's An, b; ", "李愬，字元直，"]
)
def test_work_grows_with_the_length(unit, monkeypatch):
    from shiguan.claims.tokens import Token

    compared, same = [], Token.same
    monkeypatch.setattr(Token, "same", lambda one, other: compared.append(1) or same(one, other))
    work = []
    for size in (400, 800):
        compared.clear()
        restates(unit * size + "x y z", unit * size * 2)
        work.append(len(compared) + 1)
    assert work[1] <= 2.6 * work[0] + 1000
