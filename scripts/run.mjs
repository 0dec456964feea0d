import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const KEPT_CHARACTERS = 100_000

export const root = fileURLToPath(new URL('..', import.meta.url))

/** Runs a program in the repository to its end; answers its exit code and, unless it was shown, the end of what it printed. */
export function run(command, args, { show = false, env = process.env, cwd = root } = {}) {
  return new Promise((resolve, reject) => {
    // listening first: the child may be running before spawn returns
    const stopForwarding = forwardSignals(signal => child.kill(signal))
    const child = spawn(command, args, { cwd, env, stdio: show ? 'inherit' : ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', text => {
        output = (output + text).slice(-KEPT_CHARACTERS)
      })
    }
    child.once('error', error => {
      stopForwarding()
      reject(
        new Error(`Could not run ${command} (${error.code}): put it on the PATH, then run the same command again.`),
      )
    })
    child.once('close', (code, signal) => {
      stopForwarding()
      resolve({ code: code ?? 128 + constants.signals[signal], output })
    })
  })
}

/** Runs npm: the one that started us, where there is one. */
export function runNpm(args, options) {
  const npm = process.env.npm_execpath
  return npm?.endsWith('npm-cli.js') ? run(process.execPath, [npm, ...args], options) : run('npm', args, options)
}

/** Passes our signals on, so that no child outlives us; once it has ended, we end of the same signal. */
function forwardSignals(send) {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  let received
  const forward = signal => {
    received = signal
    send(signal)
  }
  for (const signal of signals) process.on(signal, forward)
  return () => {
    for (const signal of signals) process.off(signal, forward)
    if (received) process.kill(process.pid, received)
  }
}
