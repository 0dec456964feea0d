import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const preload = fileURLToPath(new URL('shift-clock.mjs', import.meta.url))

/**
 * Starts real processes that offer calls until `stop`, which returns what each reports. `jobOf` tells each what to do, and `program` is
 * the file beside this one that they run.
 */
export async function startFleet({ processes, jobOf, shiftMs = [], program = 'worker.mjs' }) {
  const worker = fileURLToPath(new URL(program, import.meta.url))
  const children = Array.from({ length: processes }, (_, i) => {
    const execArgv = shiftMs[i] ? ['--import', preload] : []
    const env = { ...process.env, SHIFT_MS: String(shiftMs[i] ?? 0) }
    // what is warned of is what the faults do on purpose
    return fork(worker, { serialization: 'advanced', execArgv, env: { ...env, NODE_NO_WARNINGS: '1' } })
  })
  const end = () => {
    for (const child of children) child.kill('SIGKILL')
  }
  process.once('exit', end)
  await Promise.all(children.map((child, index) => ask(child, { ...jobOf(index), index, processes })))
  return {
    /** Sends one of the processes a signal. */
    signal(index, name) {
      children[index].kill(name)
    },
    async stop() {
      const answers = await Promise.all(children.map(child => ask(child, { stop: true })))
      process.removeListener('exit', end)
      return answers.map(({ report }) => report)
    },
    end,
  }
}

async function ask(child, message) {
  child.send(message)
  const answered = once(child, 'message').then(([answer]) => answer)
  const ended = once(child, 'disconnect').then(() => ({ error: 'a process of the fleet ended before it had answered' }))
  const answer = await Promise.race([answered, ended])
  if (answer.error) throw new Error(answer.error)
  return answer
}
