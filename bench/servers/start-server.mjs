import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('serve.mjs', import.meta.url))

/** Starts a subject of a module, named from bench/, as a server on a free port, in a process of its own. */
export async function startServer(module, subject, options = {}) {
  const child = fork(script, [new URL(`../${module}`, import.meta.url).href, subject, JSON.stringify(options)], {
    env: { ...process.env, NODE_ENV: 'production' },
    execArgv: [],
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the server of "${subject}" ended with ${code}`)
  })
  ended.catch(() => undefined)
  const told = () => Promise.race([once(child, 'message').then(([message]) => message), ended])
  const port = await told()
  return {
    port,
    cpuMicroseconds() {
      child.send('cpu')
      return told()
    },
    async stop() {
      child.disconnect()
      await ended.catch(() => undefined)
    },
  }
}
