import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
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

test('the keys of diana top change the order, and q ends it', async () => {
  // an admin API that does not end the stream
  const open = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`event: figures\ndata: ${figures}\n\n`)
  }).listen(0, '127.0.0.1')
  await vi.waitFor(() => expect(open.address()).not.toBeNull())
  let press: (key: string) => void = () => {}
  let isReleased = false
  let out = ''
  const ended = run(['top', '--admin-port', String((open.address() as AddressInfo).port), '--sort', 'load'], {
    input: (async function* () {})(),
    isScreen: true,
    onKey: listener => {
      press = listener
      return () => {
        isReleased = true
      }
    },
    print: line => {
      out += `${line}\n`
    },
    printError: () => {},
  })
  await vi.waitFor(() => expect(out).toContain('by load'))
  for (const key of 'xn') press(key)
  expect(out).toContain('by name')
  press('q')
  expect([await ended, isReleased]).toEqual([0, true])
  open.closeAllConnections()
  open.close()
})

test('diana top says whether a token is missing or wrong', async () => {
  const guarded = createServer((_request, response) => response.writeHead(401).end()).listen(0, '127.0.0.1')
  await vi.waitFor(() => expect(guarded.address()).not.toBeNull())
  const errorWith = async (token: string) => {
    vi.stubEnv('DIANA_ADMIN_TOKEN', token)
    let text = ''
    await run(['top', '--admin-port', String((guarded.address() as AddressInfo).port)], {
      input: (async function* () {})(),
      print: () => {},
      printError: line => {
        text += line
      },
    })
    vi.unstubAllEnvs()
    return text
  }
  expect(await errorWith('')).toContain('requires a token: set DIANA_ADMIN_TOKEN')
  expect(await errorWith('a token')).toContain('the token in DIANA_ADMIN_TOKEN is wrong')
  guarded.close()
})

test('diana top refuses an order that it does not know', async () => {
  let text = ''
  const code = await run(['top', '--sort', 'size'], {
    input: (async function* () {})(),
    print: () => {},
    printError: line => {
      text += line
    },
  })
  expect([code, text]).toEqual([2, expect.stringContaining('refused, allowed, waiting, load or name, not "size"')])
})
