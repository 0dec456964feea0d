import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** An address on loopback at which connects are neither accepted nor refused: a stopped server with a full backlog. */
export async function startBlackHole(host: string, port: number): Promise<{ close(): void }> {
  const program = `require('net').createServer().listen({ host: '${host}', port: ${port}, backlog: 1 }, () => console.log())`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const fillers: Socket[] = []
  const close = (): void => {
    for (const filler of fillers) filler.destroy()
    child.kill('SIGKILL')
  }
  process.once('exit', close)
  await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  for (let isFull = false; !isFull; ) {
    const filler = connect(port, host)
    filler.on('error', () => {})
    fillers.push(filler)
    isFull = await Promise.race([once(filler, 'connect').then(() => false), pause(100).then(() => true)])
  }
  return { close }
}
