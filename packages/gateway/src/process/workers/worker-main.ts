import cluster from 'node:cluster'
import { logChanges } from '../log-changes.ts'
import type { ServerProcess, ServerProgram } from '../server-program.ts'
import { surviveErrors } from '../survive.ts'
import {
  fail,
  type Order,
  onceSupervisorIsGone,
  readProcessSettings,
  tell,
  tellSocket,
  type WorkerSettings,
} from './messages.ts'
import { answerQuestion } from './questions.ts'

/** All programs that take calls, by name. A worker loads the one that it runs. */
const programs: Readonly<Record<ServerProgram['name'], () => Promise<ServerProgram>>> = {
  gateway: async () => (await import('../server-program.ts')).gatewayProgram,
  serve: async () => (await import('../serve-program.ts')).serveProgram,
}

let gateway: ServerProcess | undefined
let ending = false

/** Ends when the calls under way have; one that has not begun yet has none. */
async function end(): Promise<void> {
  if (ending) return
  ending = true
  await gateway?.close()
  process.exit(0)
}

// Ctrl-C and the end of a terminal reach every process of it; the supervisor says when
for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR1']) process.on(signal, () => {})
process.on('SIGTERM', () => void end())
// cluster would end this process at once, with its calls, when the supervisor is gone
cluster.worker!.exitedAfterDisconnect = true
onceSupervisorIsGone(() => void end())
// an order may come before the gateway has begun
process.on('message', (order: Order) => {
  if (order.what === 'end') void end()
  else if (order.what === 'socket') void gateway?.socket().then(tellSocket)
  else if (order.what === 'reopen') gateway?.reopenLogs()
  else if (gateway) answer(gateway, order)
})

function answer(asked: ServerProcess, { question, about, details }: Extract<Order, { what: 'ask' }>): void {
  void answerQuestion(asked, about, details).then(told => tell({ what: 'answer', question, answer: told }))
}

try {
  const { logLevel, program, ...settings } = readProcessSettings<WorkerSettings>()
  const lines = {
    print: (line: string) => tell({ what: 'print', line }),
    printError: (line: string) => tell({ what: 'printError', line }),
  }
  const onWarning = (warning: string): void => lines.printError(`warning: ${warning}`)
  const logger = logLevel === undefined ? false : { level: logLevel }
  surviveErrors({ report: lines.printError })
  const { start } = await programs[program]()
  gateway = await start({ ...settings, logger, onWarning }, limiter => logChanges(limiter, lines))
  tell({ what: 'ready', address: gateway.address, also: gateway.also })
} catch (error) {
  fail(error)
}
