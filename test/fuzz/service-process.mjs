// The two services in a process of their own, so that they answer while attackers keep another one busy.
import { startGoodService, startHostileService } from './service.mjs'

const [hostile, good] = await Promise.all([startHostileService(), startGoodService()])
process.on('message', answers => hostile.setAnswers(answers))
process.on('disconnect', () => process.exit(0))
process.send({ hostile: hostile.url, good: good.url })
