import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The gateway as its users start it: built, and in a process of its own. */
export function build(): void {
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b'], { cwd: root, stdio: 'pipe' })
}

export interface Program {
  readonly child: ChildProcess
  readonly url: string
  /** All that it printed so far. */
  said(): string
  /** How it ended. */
  readonly ended: Promise<number | null>
}

export async function startDiana(args: readonly string[]): Promise<Program> {
  const main = join(root, 'packages/gateway/bin/diana.mjs')
  const child = spawn(process.execPath, [main, 'start', '--port', '0', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', piece => {
      text += piece
    })
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const listens = expect.poll(() => text, { timeout: 40_000 }).toContain('listens on')
  await Promise.race([listens, ended.then(code => Promise.reject(new Error(`ended with ${code}: ${text}`)))])
  return { child, url: /listens on (\S+)/.exec(text)![1]!, said: () => text, ended }
}

/** The processes that a program has started, by what they run. */
export function childrenOf(pid: number): { readonly workers: number[]; readonly counting: number[] } {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean)
  const runs = (child: string, program: string): boolean => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes(program)
    } catch {
      return false
    }
  }
  return {
    workers: children.filter(child => runs(child, 'worker-main')).map(Number),
    counting: children.filter(child => runs(child, 'counting-main')).map(Number),
  }
}

/** What became of the calls of a load: by status, or by the code of the error. */
export type Outcomes = Map<string, number>

/** Calls one after the other on each of several kept connections, until `stop` is called. */
export function load(url: string, connections: number): { stop(): Promise<Outcomes>; readonly outcomes: Outcomes } {
  const outcomes: Outcomes = new Map()
  let running = true
  const callers = Array.from({ length: connections }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (running) {
      const outcome = await call(url, agent)
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      // nobody listens any more
      if (outcome === 'ECONNREFUSED' || outcome === 'never accepted') break
    }
    agent.destroy()
  })
  return {
    outcomes,
    stop: async () => {
      running = false
      await Promise.all(callers)
      return outcomes
    },
  }
}

export function call(url: string, agent?: Agent): Promise<string> {
  return new Promise(resolve => {
    const asked = request(url, agent ? { agent } : {}, answer => {
      answer.resume()
      answer.on('error', error => resolve(`broken ${(error as NodeJS.ErrnoException).code}`))
      answer.on('end', () => resolve(String(answer.statusCode)))
    })
    asked.on('error', error => {
      const { code } = error as NodeJS.ErrnoException
      // a new connection that waited to be accepted when nobody listened any more
      resolve(code === 'ECONNRESET' && agent && !asked.reusedSocket ? 'never accepted' : String(code))
    })
    asked.end()
  })
}
