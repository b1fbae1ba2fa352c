"""Where the words of a claim stand in a passage, in forms that change nothing; one small change is not found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.restatement import places
from shiguan.claims.tokens import Token

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
SAME = [
    ("Born in Acre, Otto fled.", "Otto fled."),
    ("天降大雨，大坝垮了。", "大坝垮了。"),
    ("Karl came to Acre, took the town, and was killed.", "Karl took the town."),
    ("Hale, a surgeon, 58, of Leeds, opened a hospital.", "Hale opened a hospital."),
    ("李愬，字元直，洮州临潭人，讨淮西有功。", "李愬讨淮西有功。"),
    ("议会在周五批准了预算。", "议会批准了预算。"),
    ("森林占全州土地67%。", "森林占全州土地67%。"),
    ("The chief mate of the Pequod was Starbuck.", "Starbuck was the chief mate of the Pequod."),
    ("Starbuck was the chief mate of the Pequod.", "The chief mate of the Pequod was Starbuck."),
    (WAR, "An Lushan was murdered by An Qingxu in 757."),
    (WAR, "An Qingxu murdered An Lushan."),
    (WAR, "Yin Ziqi was shot in the left eye."),
    (WAR, "The rebels took Luoyang in 755."),
    (WAR, "The rebels took Luoyang in the winter of 755."),
    (WAR, "Yes, the rebels took Luoyang with a hundred and fifty thousand men."),
    ("An Qingxu slew An Lushan.", "An Lushan was slain by An Qingxu."),
    ("The museum is open ~~every day~~ on Sundays.", "The museum is open on Sundays."),
    (CLASSICAL, "755年十一月，安禄山反于范阳。"),
    (CLASSICAL, "安庆绪杀安禄山。"),
    (CLASSICAL, "肃宗以郭子仪为司空。"),
    ("普通货柜最大毛重（包括高立方型）30480公斤。", "普通货柜最大毛重30480公斤。"),
    (
        "The church was rebuilt in stone by Karl Hale after the fire.",
        "Karl Hale rebuilt the church in stone after the fire.",
    ),
    ("Some 16.2 percent of them fled to Acre.", "Some 16.2% of them fled to Acre."),
    ("Joe Hale came to Acre. Hale was raised as a monk.", "Joe Hale was raised as a monk."),
    ("Guatemala and Honduras joined the union in 1990.", "In 1990 Guatemala and Honduras joined the union."),
    ("The king, known as Otto, fled to Acre.", "The king fled to Acre."),
    ("高车有部落十馀万，役属柔然。", "高车有部落十余万。"),
    ("魏以李崇为刺史。崇，显祖之舅子也。", "李崇，显祖之舅子也。"),
    ("Otto then fled to Acre.", "Otto fled to Acre."),
    ("However, his friend was killed by Otto and Karl.", "Otto and Karl killed his friend."),
    ("In the north, the Whigs are the largest party.", "The Whigs are the largest party in the north."),
    ("He met Karl Hale, who had burned the town.", "Karl Hale had burned the town."),
    ("Groups are arranged in superclusters, which are not bound.", "Superclusters are not bound."),
    ("The Lucas test, which always ends, is slow.", "The Lucas test always ends."),
    ("| 757 | An Lushan murdered by An Qingxu |", "An Qingxu murdered An Lushan."),
    ("Philip II of Spain ordered Otto Hale to go home.", "Otto Hale was ordered by Philip II of Spain to go home."),
    ("Karl, Otto and Hale besieged Acre in 1300.", "Otto besieged Acre in 1300."),
    ("From 1893 to 1938 Acre was the site of the home.", "Acre was the site of the home from 1893 to 1938."),
    ("There was unrest in 1962, when Karl's men took Acre.", "In 1962 Karl's men took Acre."),
    ("It uses approx. 4 kg (8.8 lb) of steam.", "It uses about 4 kg (8.8 lb) of steam."),
    ("Its 209-acre (85 ha) yard is 3 miles (5 km) west of Acre.", "Its 209-acre yard is 5 km west of Acre."),
    ("In the 1960s Otto ruled, the 3rd king of Acre.", "In the 1960s Otto ruled, the third king of Acre."),
    ("The duke planned the wall and hopes to stop there.", "The duke plans the wall and hoped to stop there."),
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
    ("元和十二年，李愬，晟之子也，入蔡州城。", "元和十二年李愬入蔡州城。"),
    ("郭子仪，安禄山反后，率军东讨。", "郭子仪率军东讨。"),
    ("1986年，戚务生成为主教练，1989年转而执教大连队。", "戚务生于1986年成为主教练，1989年转而执教大连队。"),
    ("石山麟于1985年创立集团，此前他在狱中十年。", "1985年，石山麟创立集团，此前他在狱中十年。"),
    ("丙申，突厥杀刘武周于白道。", "丙申，刘武周被突厥杀于白道。"),
    ("丙申，斩裴炎于都亭。", "丙申，裴炎被斩于都亭。"),
    ("密遂败绩，裴仁基、祖君彦并为世充所虏。", "裴仁基、祖君彦并被世充所虏。"),
    ("密遂败绩，裴仁基、祖君彦并为世充所虏。", "世充虏裴仁基、祖君彦。"),
    ("议会通过了法案。", "法案由议会通过。"),
    ("Henry Twenty and Karl Twenty came. 议会通过了法案。", "法案由议会通过。"),
    ("他把首都从洛阳迁到长安。", "他将首都从洛阳迁到长安。"),
    ("劉裕被刁逵抓著。", "刘裕被刁逵抓着。"),
    ("执刺史李思文。思文，敬业之叔父也，知敬业之谋。", "李思文是敬业的叔父。"),
    ("20世纪20年代，该店开业于广州。", "1920年代，该店开业于广州。"),
    ("密与万馀人驰向洛口。", "密与一万余人驰向洛口。"),
    ("王渊又开启了洛阳城门。", "王渊开启了洛阳城门。"),
    ("李光进破贼于郓州。光进斩贼将王武俊。", "李光进斩贼将王武俊。"),
    ("王逢奏兵少，乞济师，诏太原军二千人赴之。", "诏太原军2000人赴之。"),
    ("In May Karl Hale wrote the study.", "In May Hale wrote the study."),
    (
        "Norman words, such as baron (barwn), first entered Welsh then.",
        "Norman words, such as baron, first entered Welsh then.",
    ),
    ("She was honoured by the king in 1911.", "In 1911 she was honoured by the king."),
    ("Between 1876 and 1914, many Italians left home.", "Many Italians left home between 1876 and 1914."),
    ("The disease is spread by ticks.", "Ticks spread the disease."),
    ("A flood destroyed the bridge in 1910.", "The bridge was destroyed by a flood in 1910."),
    ("他于1990年在上海创办了公司。", "他在上海创办了公司。"),
    ("工期为三到五天。", "工期为3至5天。"),
    (
        "He obtained the first patent for a steam engine in 1606.",
        "In 1606 he obtained the first patent for a steam engine.",
    ),
    ("廉颇，赵之良将，年老。", "廉颇是赵之良将。"),
    ("Tolstoy began in 1863. He finished it in 1869.", "Tolstoy finished it in 1869."),
    ("Turing was a fellow. He later worked at Bletchley Park.", "Turing worked at Bletchley Park."),
    ("Karl took the town, burned the mill, and was killed.", "Karl burned the mill."),
    ("Prices, which had risen in 1990, fell in 1991.", "Prices fell in 1991."),
    ("陈胜者，阳城人也，字涉。", "陈胜字涉。"),
    ("于谦，字廷益，浙江钱塘人，明朝名臣。", "于谦是浙江钱塘人。"),
    ("The deed, signed by Lincoln, was lost.", "The deed was signed by Lincoln."),
    ("Before the war he taught Latin in Cork.", "He taught Latin in Cork before the war."),
    ("Karl fled to Acre because he was ill.", "Because he was ill, Karl fled to Acre."),
    ("Karl, not Otto, fled to Acre.", "Karl fled to Acre."),
    ("The poll gave him 45 percent.", "The poll gave him 45%."),
]
OTHER = [
    ("The abbot, Hugh, withdrew, and the prior, Odo, sold the land.", "The abbot sold the land."),
    ("The general was beaten by Omar, who had no cavalry, and retired to Tunis.", "Omar retired to Tunis."),
    ("The treaty ended the war with Sweden, which lost Livonia.", "The war lost Livonia."),
    ("张志远生于苏州，其弟毕业于大学，1960年担任馆长。", "张志远1960年担任馆长。"),
    ("Lord Acre met Otto. He sold the mill.", "Lord sold the mill."),
    ("In 1300 Otto, the mayor, fled. In 1310 he sold the mill.", "In 1300 Otto sold the mill."),
    ("Karl fled to Acre. He was said to have sold the mill.", "Karl sold the mill."),
    ("李光弼至。光弼善骑，射虎。", "李光射虎。"),
    ("The deed, which Lincoln lost, signed by Hale, burned.", "The deed was signed by Hale."),
    ("That Otto fled is a legend.", "Otto fled."),
    ("议会在周五未批准预算。", "议会批准预算。"),
    ("议会否决又批准的预算生效。", "议会生效。"),
    ("其党悉平，获男女三千余人。", "其党悉平，获男女三千。"),
    ("Soon all the boats but one were dropped.", "Soon all the boats were dropped."),
    ("袁高忤旨，映连请为左丞。", "袁高忤旨，为左丞。"),
    # Behind a second phrase somebody else may have done it, and so may a pronoun's subject.
    ("Newton corresponded with Leibniz. He published first.", "Leibniz published first."),
    ("Peter feared the captain. He flogged men for nothing.", "Peter flogged men for nothing."),
    ("Anna was a nurse. Her father fled. He died in Greece.", "Anna died in Greece."),
    ("Starbuck was a mate of the Pequod.", "A mate of the Pequod was Starbuck."),
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
    ("Guo Ziyi felt the blow at Luoyang.", "Guo Ziyi fell the blow at Luoyang."),
    ("He founded the burning town of Luoyang.", "He found the burning town of Luoyang."),
    (CLASSICAL, "安禄山杀安庆绪。"),
    (CLASSICAL, "天宝十四载十一月，安禄山反于范阳，众十五。"),
    (CLASSICAL, "肃宗以李光弼为司空。"),
    (CLASSICAL, "李光进讨淮西，多破贼。"),
    (CLASSICAL, "史思明肯降。"),
    ("史思明应降于唐军。", "史思明降于唐军。"),
    ("田承嗣全投降朝廷。", "田承嗣投降朝廷。"),
    ("朝廷常赦免田悦。", "朝廷赦免田悦。"),
    ("The monk was burying the king near Acre.", "The monk was buried the king near Acre."),
    ("They left the valley without killing Karl Reed in his house.", "Karl Reed was killed in his house."),
    ("Karl Hale was said to be loved in Acre by Otto.", "Otto said Karl Hale to be loved in Acre."),
    ("He was third in line for the throne.", "He was three in line for the throne."),
    ("高车有部落十馀万，役属柔然。", "高车有部落十万。"),
    ("高车有部落十万，役属柔然。", "高车有部落十余万。"),
    ("The duke burned the towns near Acre.", "The duke burned the town near Acre."),
    ("Otto killed Karl and Hale.", "Karl was killed by Otto and Hale."),
    ("Karl was killed by Otto and Hale.", "Otto killed Karl and Hale."),
    ("Drugs are a common cause in developed countries.", "Drugs are a common cause in developing countries."),
    ("In Acre, Otto fled to Rome and died.", "Otto fled to Rome and died in Acre."),
    ("The city has had only one flood since 1871.", "In 1871 the city has had only one flood."),
    ("In the 1960s Otto ruled the town.", "In 1960 Otto ruled the town."),
    ("In 44 BC Otto took the town.", "In 44 Otto took the town."),
    ("Karl fled, but Otto did not.", "Otto fled."),
    ("Had Karl fled, Otto would have stayed.", "Karl fled."),
    ("The men of Karl fled. Otto stayed.", "Karl fled."),
    ("The ship reached Equatorial Guinea in May.", "The ship reached Guinea in May."),
    ("They settled in British Columbia in May.", "They settled in Columbia in May."),
    ("He met the wife of Karl Hale, a singer.", "Karl Hale was a singer."),
    ("Karl was ill. After Otto took Acre, he died there.", "After Otto took Acre, Karl died there."),
    ("Otto burned Acre in May. Karl fled to Rome in June.", "Karl fled to Rome in June, then Otto burned Acre in May."),
    ("Did Otto build the wall? He did not.", "Did Otto build the wall."),
    ("Hale was born in Acre, the son of Joe Hale. Hale fled.", "Joe Hale was born in Acre."),
    ("Joe Hale came with Kim Hale. Later Hale fled to Acre.", "Later Joe Hale fled to Acre."),
    ("In 1950 North Korea invaded South Korea.", "In 1950 North Korea invaded Korea."),
    ("He met Otto. Karl fled from Acre with him.", "Otto Karl fled from Acre with him."),
    ("Otto fled to Acre in May. Karl ruled Tyre.", "Otto fled to Acre in May, because Karl ruled Tyre."),
    ("王渊守潼关三年。李信降于突厥。", "王渊守潼关三年，故李信降于突厥。"),
    ("In 1556 the duke ruled Parma.", "Since 1556 the duke ruled Parma."),
    ("The duke was crowned in 1556 and died in Parma.", "The duke was crowned and died in Parma in 1556."),
    ("The town which Otto took in 1310 was lost in 1320.", "The town which Otto took was lost in 1310."),
    ("王渊攻洛阳三月，克之。", "王渊三月攻洛阳，克之。"),
    ("元和三年，王渊守潼关。", "王渊守潼关三年。"),
    ("王渊于1368年入洛阳，李信于1399年死。", "王渊入洛阳，李信于1368年死。"),
    ("No ship, which sank, was found in Acre.", "Ship sank in Acre."),
    ("If x > 0 the call ends, and p<5 holds.", "If x < 0 the call ends."),
    ("The error is ≤ 5 metres in Acre.", "The error is ≥ 5 metres in Acre."),
    ("The cells froze at −20 °C in Acre.", "The cells froze at 20 °C in Acre."),
    ("Otto's men burned the town of Karl Hale.", "Karl Hale was a men of Otto."),
    ("Karl was the son of Hale. He left the town.", "Karl left the town."),
    ("Otto came. Acre was a town. He took it in May.", "Acre took it in May."),
    ("Otto was a singer. His son died. It was a sad day.", "Otto was a sad day."),
    ("He left. Karl was a king. He died in Acre.", "Karl died in Acre."),
    ("His brother was ill. Karl was a king. He died in Acre.", "Karl died in Acre."),
    ("Was Karl killed by Otto, who had burned the town?", "Otto had burned the town."),
    ("Starbuck was a mate of the Pequod.", "The mate of the Pequod was Starbuck."),
    ("| 757 | An Lushan murdered by An Qingxu |", "An Lushan murdered An Qingxu."),
    ("Karl Hale stopped by Acre.", "Acre stopped Karl Hale."),
    ("From 1893 to 1938 Acre was the site of the home.", "Acre was the site of the home in 1938."),
    ("In 1893 Acre was the site of the home.", "Acre was the site of the home from 1893."),
    ("In 1968 Otto fled, and Karl Hale took the town.", "Karl Hale took the town in 1968."),
    ("In 1949, after the fall of 1945, Karl moved it to Acre.", "Karl moved it to Acre in 1945."),
    ("The river flows 109 miles (175 km) south.", "The river flows 175 miles south."),
    ("Take 5mg of it at night.", "Take 5g of it at night."),
    ("The sample held 10⁵ cells of Acre.", "The sample held 10³ cells of Acre."),
    ("The mill is at 12A Hale Street.", "The mill is at 12B Hale Street."),
    ("The loop runs while count == limit holds.", "The loop runs while count != limit holds."),
    ("The loop runs while x && y holds.", "The loop runs while x || y holds."),
    ("The flag --v prints its version.", "The flag -v prints its version."),
    ("The plant makes 5 MW of power.", "The plant makes 5 mW of power."),
    ("It sold for 100 £ a piece.", "It sold for 100 $ a piece."),
    ("The set A ∪ B is open.", "The set A ∩ B is open."),
    ("Jan founded the school of Acre.", "Jane founded the school of Acre."),
    ("Otto drew the plan of the mill.", "Otto drew the plane of the mill."),
    ("The monks robed the king at dawn.", "The monks robbed the king at dawn."),
    ("The duke granted human rights to Acre.", "The duke granted humane rights to Acre."),
    ("Do **not** drink the water of the spring.", "Drink the water of the spring."),
    ("The museum is open ~~every day~~ on Sundays.", "The museum is open every day."),
    ("Few settlers survived the winter.", "A few settlers survived the winter."),
    ("Karl was killed by Otto?", "Otto killed Karl."),
    ("Karl rather than Otto led the army.", "Otto led the army."),
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
    ("The king, who is dead; the queen gave them land.", "The king gave them land."),
    ("Zhang Xun, with one in ten of the men, reached Suiyang. The rebels, who lost, fled.", "Zhang Xun fled."),
    ("咸亨二年薨，赠荆州都督。", "显庆二年薨，赠荆州都督。"),
    ("十九年二月庚戌，如洛阳宫。", "开元十九年二月庚戌，如洛阳宫。"),
    ("1920年代，该店开业于广州。", "1820年代，该店开业于广州。"),
    ("贼众二三千人攻城，不克。", "贼众三千人攻城，不克。"),
    ("贼众十五六人攻城，不克。", "贼众十六人攻城，不克。"),
    ("有三五人从李靖入城。", "有三十五人从李靖入城。"),
    ("王渊开启了洛阳城门。", "王渊又开启了洛阳城门。"),
    ("李光进破贼于郓州。朱光进继至，光进斩贼将王武俊。", "李光进斩贼将王武俊。"),
    ("李之芳破贼于云州，获马三百匹。", "李芳破贼于云州，获马三百匹。"),
    ("丙申，突厥杀刘武周于白道。", "丙申，突厥被刘武周杀于白道。"),
    ("密遂败绩，裴仁基、祖君彦并为世充所虏。", "祖君彦虏世充、裴仁基。"),
    ("The tax effectively ruined Acre.", "Acre was ruined."),
    ("The bridge was rebuilt after its collapse in 1879.", "In 1879 the bridge was rebuilt after its collapse."),
    ("He shot the man with the gun.", "With the gun, he shot the man."),
    ("京剧，昆曲，越剧，各有特色。", "京剧是昆曲。"),
    ("臣焉敢欺陛下。", "臣敢欺陛下。"),
    ("全县有人口三十余万。", "全县有人口30万。"),
    ("She was honoured for rescuing sailors in 1911.", "In 1911 she was honoured for rescuing sailors."),
    ("Between 1876 and 1914 four million left Italy.", "In 1914 four million left Italy."),
    ("Between 1990 and 2000 the population doubled.", "Between 2000 and 1990 the population doubled."),
    ("The city was taken by the rebels.", "The city took the rebels."),
    ("The bridge was almost destroyed by a flood.", "A flood destroyed the bridge."),
    ("The king abdicated. In May, his son was crowned.", "The king abdicated in May."),
    ("The church was destroyed. During the siege, the monks hid.", "The church was destroyed during the siege."),
    ("该校成立于1950年。3月，开始招生。", "该校成立于1950年3月。"),
    ("获奖者：张三。李四、王五落选。", "张三、李四、王五落选。"),
    ("The reactor exploded in the simulation.", "The reactor."),
    ("南京的大学免除学费。", "南京大学免除学费。"),
    ("被告殴打的原告住院三天。", "被告殴打原告住院三天。"),
    ("于是日军占领南京。", "于日军占领南京。"),
    ("The light flashes when the battery runs low.", "The light flashes."),
    ("Suppose the following. Alice lends Bob 500 pounds.", "Alice lends Bob 500 pounds."),
    ("The following story is old. Karl killed the bear.", "Karl killed the bear."),
    ("以下是一则谣言。央行下调利率。", "央行下调利率。"),
    ("免责条款\n被保险人酒后驾车，公司赔付十万元。", "被保险人酒后驾车，公司赔付十万元。"),
    ("Smoking is a cause of cancer.", "Smoking is the cause of cancer."),
    ("Most expensive houses burned in May.", "The most expensive houses burned in May."),
    ("Anna was his sister-in-law.", "Anna was his sister."),
    ("5–10 people died in May.", "10 people died in May."),
    ("1966—1976年，全国高校停止招生。", "1976年，全国高校停止招生。"),
    ("该病潜伏期为3天—7天。", "该病潜伏期为3天。"),
    ("北京—上海航线全线停飞。", "上海航线全线停飞。"),
    ("该药治疗高血压，糖尿病，不在适应症之列。", "该药治疗高血压、糖尿病。"),
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


def find(claim, passage):
    return next(places(claim, passage), None)


@pytest.mark.parametrize(("passage", "claim"), SAME)
def test_what_changes_nothing_is_found(passage, claim):
    assert find(claim, passage)


@pytest.mark.parametrize(("passage", "claim"), OTHER)
def test_one_small_change_is_not_found(passage, claim):
    assert find(claim, passage) is None


def test_the_place_is_where_it_is_said():
    assert [WAR[start:end] for start, end in find("An Qingxu murdered An Lushan.", WAR)] == [
        "An Lushan was murdered by An Qingxu"
    ]


def test_what_is_left_out_is_in_no_piece():
    text = "The king, who had returned from the north, gave them land."
    assert [text[start:end] for start, end in find("The king gave them land.", text)] == ["king", "gave them land"]


@given(st.text(), st.text() | st.text(alphabet="ab cd.。史安祿山十一23 不not"))
def test_any_texts_give_places_or_none(claim, passage):
    for found in places(claim, passage):
        edges = [at for span in found for at in span]
        assert edges == sorted(edges)
        assert edges[-1] <= len(passage)


@pytest.mark.parametrize(
    "unit",
    ["哈", "in 1778 ", "An An ", "a b ", "被", "安禄山", "x, who a, ", "An's An, b; ", "李愬，字元直，", "a, b "],
)
def test_work_grows_with_the_length(unit, monkeypatch):
    compared, same = [], Token.same
    monkeypatch.setattr(Token, "same", lambda one, other: compared.append(1) or same(one, other))
    work = []
    for size in (400, 800):
        compared.clear()
        list(places(unit * size + "x y z", unit * size * 2))
        work.append(len(compared) + 1)
    assert work[1] <= 2.6 * work[0] + 1000
