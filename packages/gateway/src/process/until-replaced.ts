import type { RunningAdmin } from '../admin/server/start-admin.ts'
import type { ServerProcess } from './server-program.ts'
import type { ServiceManager } from './service-manager.ts'
import { startSuccessor } from './successor.ts'

export interface ReplacedParts {
  readonly gateway: ServerProcess
  readonly admin: RunningAdmin | undefined
  readonly manager: ServiceManager
  readonly isDemo: boolean
  /** This process is asked to end, and none is to take its place. */
  readonly stopped: Promise<void>
  print(line: string): void
  printError(line: string): void
}

/**
 * Resolves when another process has taken over, which SIGUSR2 asks for. If that process does not come to take calls, this one
 * goes on as before.
 */
export function untilReplaced(parts: ReplacedParts): Promise<void> {
  const { manager, print, printError } = parts
  return new Promise(resolve => {
    let isUnderWay = false
    let isStopped = false
    void parts.stopped.then(() => {
      isStopped = true
      process.off('SIGUSR2', onSignal)
    })
    const replace = async (): Promise<void> => {
      if (isStopped) return
      if (isUnderWay) {
        print('SIGUSR2: a new process is being started already; this signal starts no other one.')
        return
      }
      isUnderWay = true
      try {
        await manager.reloading()
        const pid = await replaceBy(parts)
        manager.leave()
        print(`Process ${pid} takes the calls from now on; this one finishes those under way.`)
        resolve()
      } catch (error) {
        if (isStopped) return
        printError(`No new process took over: ${(error as Error).message}. This one goes on.`)
        void manager.stillReady()
        isUnderWay = false
      }
    }
    const onSignal = (): void => void replace()
    process.on('SIGUSR2', onSignal)
  })
}

async function replaceBy({ gateway, admin, isDemo, stopped }: ReplacedParts): Promise<number> {
  if (isDemo) throw new Error('the demo has its service inside')
  if (process.pid === 1) throw new Error('with process 1 its container ends: replace the container instead')
  const traffic = await gateway.socket()
  if (traffic === undefined) throw new Error('the socket on which calls come in cannot be handed over')
  const operators = admin?.socket()
  const ending = new AbortController()
  void stopped.then(() => ending.abort())
  return await startSuccessor({ traffic, ...(operators && { admin: operators }) }, ending.signal)
}
