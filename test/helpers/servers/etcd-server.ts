import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type Program, startProgram } from './program.ts'

/** A real etcd, and the calls of its gateway that tests make. */
export interface EtcdServer {
  readonly authority: string
  /** Calls the gateway; throws unless it answers 200. */
  ask(path: string, body: unknown, token?: string): Promise<Record<string, unknown>>
  put(key: string, text: string): Promise<void>
  remove(key: string): Promise<void>
  stop(signal?: NodeJS.Signals): Promise<void>
  start(): Promise<void>
  /** Stops it and deletes its data. */
  close(): Promise<void>
}

const base64 = (text: string) => Buffer.from(text).toString('base64')

export async function startEtcd(): Promise<EtcdServer> {
  const folder = await mkdtemp(join(tmpdir(), 'diana-etcd-'))
  const client = `http://127.0.0.1:${await freePort()}`
  const peer = `http://127.0.0.1:${await freePort()}`
  const args = [
    ['--data-dir', folder],
    ['--listen-client-urls', client],
    ['--advertise-client-urls', client],
    ['--listen-peer-urls', peer],
    ['--initial-advertise-peer-urls', peer],
    ['--initial-cluster', `default=${peer}`],
    ['--max-request-bytes', `${16 * 1024 * 1024}`],
    ['--heartbeat-interval', '10'],
    ['--election-timeout', '50'],
    ['--log-level', 'error'],
  ].flat()
  let program: Program | undefined

  async function ask(path: string, body: unknown, token = ''): Promise<Record<string, unknown>> {
    const headers = token === '' ? {} : { authorization: token }
    const response = await fetch(client + path, { method: 'POST', body: JSON.stringify(body), headers })
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Record<string, unknown>
  }
  const start = async () => {
    // a linearizable read succeeds once there is a leader
    program = await startProgram('etcd', args, async () => {
      const { status } = await fetch(`${client}/health`)
      return status === 200
    })
  }
  const stop = async (signal?: NodeJS.Signals) => {
    await program?.stop(signal)
    program = undefined
  }
  await start()
  return {
    authority: client.slice('http://'.length),
    ask,
    put: async (key, text) => void (await ask('/v3/kv/put', { key: base64(key), value: base64(text) })),
    remove: async key => void (await ask('/v3/kv/deleterange', { key: base64(key) })),
    start,
    stop,
    async close() {
      await stop()
      await rm(folder, { recursive: true })
    },
  }
}
