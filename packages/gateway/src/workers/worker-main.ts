import type { GatewayProcess } from '../gateway-process.ts'
import { startGatewayProcess } from '../gateway-process.ts'
import { surviveErrors } from '../survive.ts'
import { tellOfChanges } from '../tell-of-changes.ts'
import { fail, type Order, readProcessSettings, tell, type WorkerSettings } from './messages.ts'
import { answerQuestion } from './questions.ts'

let gateway: GatewayProcess | undefined
let ending = false

async function end(): Promise<void> {
  if (ending) return
  ending = true
  await gateway?.close()
  process.exit(0)
}

// Ctrl-C reaches every process of a terminal; the supervisor says when
process.on('SIGINT', () => {})
process.on('SIGTERM', () => void end())
process.on('disconnect', () => void end())

try {
  const { logLevel, ...settings } = readProcessSettings<WorkerSettings>()
  const lines = {
    print: (line: string) => tell({ what: 'print', line }),
    complain: (line: string) => tell({ what: 'complain', line }),
  }
  const logger = logLevel === undefined ? false : { level: logLevel }
  surviveErrors({ report: lines.complain, giveUp: () => process.exit(1) })
  gateway = await startGatewayProcess({ ...settings, logger }, limiter => tellOfChanges(limiter, lines))
  const { limiter, address } = gateway
  process.on('message', (order: Order) => {
    if (order.what === 'end') void end()
    else {
      const { question, about, details } = order
      answerQuestion(limiter, about, details).then(answer => tell({ what: 'answer', question, answer }))
    }
  })
  tell({ what: 'ready', address })
} catch (error) {
  fail(error)
}
