import assert from 'node:assert/strict'
import { connect } from 'node:net'
import type { LimiterOptions } from '../../create/create-limiter.ts'
import type { SuiteTest } from '../suite-test.ts'
import { ask, httpClient, sendBytes } from './client.ts'
import { type FilterSuiteOptions, places, play, type Scene, until } from './scene.ts'

/** Lists the promises of a filter for all that HTTP/1.1 lets a caller do with one connection. */
export function connectionTests(options: FilterSuiteOptions): SuiteTest[] {
  const tests: SuiteTest[] = []
  const add = (name: string, limits: LimiterOptions, test: (scene: Scene) => Promise<void>): void => {
    tests.push({ name, run: () => play(options, limits, test) })
  }
  const line = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

  add(
    'every call of a persistent connection is counted',
    { rules: [{ id: 'all', limit: '3/h' }] },
    async ({ port }) => {
      const client = httpClient(port, true)
      const statuses: number[] = []
      for (let call = 0; call < 5; call++) statuses.push((await ask(client, { path: '/hello' })).status)
      client.close()
      assert.deepEqual(statuses, [200, 200, 200, 503, 503])
    },
  )

  add('every pipelined call is counted, in order', { rules: [{ id: 'all', limit: '3/h' }] }, async ({ port }) => {
    assert.deepEqual(await sendBytes(port, line('/hello').repeat(5), 5), [200, 200, 200, 503, 503])
  })

  add(
    'pipelined calls of a closed connection release all their slots',
    { rules: [{ ...places, limit: 20 }] },
    async scene => {
      const socket = connect(scene.port, '127.0.0.1')
      socket.on('error', () => {}).write(line('/slow').repeat(15))
      await until(async () => (await scene.free()) === 5)
      socket.destroy()
      await until(async () => (await scene.free()) === 20)
    },
  )

  add('a call with Expect: 100-continue is counted', { rules: [{ id: 'all', limit: '1/h' }] }, async ({ port }) => {
    const head =
      'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nConnection: close\r\nExpect: 100-continue\r\n'
    const statuses = async (): Promise<number[]> => {
      return (await sendBytes(port, `${head}Content-Length: 2\r\n\r\nhi`, 3)).filter(status => status !== 100)
    }
    assert.deepEqual([await statuses(), await statuses()], [[200], [503]])
  })

  return tests
}
