import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from './run.ts'

const counts = { allowed: 5, refused: 1, waited: 0, shadowRefused: 0, waiting: 0 }
const figures = JSON.stringify({ at: 1_700_000_000_000, total: counts, rules: { all: counts } })
/** An admin API that reports two seconds and ends. */
const server = createServer((_request, response) => {
  const event = `event: figures\ndata: ${figures}\n\n`
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(event + event)
})

beforeAll(() => new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => new Promise(resolve => server.close(resolve)))

async function outputOf(isScreen: boolean): Promise<string> {
  let out = ''
  const { port } = server.address() as AddressInfo
  await run(['top', '--admin-port', String(port)], {
    input: (async function* () {})(),
    isScreen,
    print: line => {
      out += `${line}\n`
    },
    printError: () => {},
  })
  return out
}

test('diana top prints plain lines into a pipe, and clears the screen of a terminal every second', async () => {
  const piped = await outputOf(false)
  expect(piped.match(/22:13:20 UTC/g)).toHaveLength(2)
  expect(piped).not.toContain('\u001b')
  expect((await outputOf(true)).split('\u001b[H\u001b[2J')).toHaveLength(3)
})
