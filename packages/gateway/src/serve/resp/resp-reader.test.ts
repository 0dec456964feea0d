import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomRuns } from '../../../../../test/helpers/random-runs.ts'
import { RespError, RespReader } from './resp-reader.ts'

const bounds = { arguments: 1024, argumentBytes: 65_536, bytes: 1_048_576 }

/** All commands of some pieces, and the error at which they end. */
function commandsOf(pieces: readonly Buffer[], given = bounds) {
  const reader = new RespReader(given)
  const commands: (readonly string[])[] = []
  try {
    for (const piece of pieces) {
      reader.push(piece)
      for (let words = reader.next(); words !== undefined; words = reader.next()) commands.push(words)
    }
  } catch (error) {
    if (!(error instanceof RespError)) throw error
    return { commands, error: error.message }
  }
  return { commands, isWithin: reader.isWithin }
}

const read = (text: string) => commandsOf([Buffer.from(text, 'latin1')])

function written(words: readonly string[]): Buffer {
  return Buffer.from(`*${words.length}\r\n${words.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`)
}

/** Bytes cut at some places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map(place => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length)).filter(({ length }) => length > 0)
}

describe('commands of the Redis protocol', () => {
  it.each([
    ['*1\r\n$4\r\nPING\r\n', [['PING']]],
    ['*2\r\n$4\r\nECHO\r\n$0\r\n\r\n', [['ECHO', '']]],
    ['PING\r\n', [['PING']]],
    ['PING\n', [['PING']]],
    ['  SET  "a b\\n\\x41" \'c "d"\'  \r\nPING\r\n', [['SET', 'a b\nA', 'c "d"'], ['PING']]],
    ['\r\n*0\r\n*-1\r\nPING\r\n', [[], [], [], ['PING']]],
    ['*1\r\n$6\r\nk\xc3\xbc\r\nx\r\n', [['kü\r\nx']]],
  ])('the commands of %j are read', (text, commands) => {
    expect(read(text)).toEqual({ commands, isWithin: false })
  })

  it.each([
    ['*1025\r\n', 'invalid multibulk length'],
    ['*99999999999\r\n', 'invalid multibulk length'],
    ['*\r\n', 'invalid multibulk length'],
    ['*1x\r\n', 'invalid multibulk length'],
    ['*1\r\r', 'invalid multibulk length'],
    ['*1\r\n+OK\r\n', "expected '$', got '+'"],
    ['*1\r\n\x00', "expected '$', got '?'"],
    ['*1\r\n$-1\r\n', 'invalid bulk length'],
    ['*1\r\n$65537\r\n', 'invalid bulk length'],
    ['*1\r\n$1\r\nab\r\n', 'expected the end of a line behind an argument'],
    ['SET "a\r\n', 'unbalanced quotes in request'],
    ['SET "a"b\r\n', 'unbalanced quotes in request'],
    [`*20\r\n${`$65536\r\n${'a'.repeat(65_536)}\r\n`.repeat(17)}`, 'too many bytes in one request'],
    ['a'.repeat(65_537), 'too big inline request'],
    [`${'a'.repeat(65_537)}\r\n`, 'too big inline request'],
    [`${'a '.repeat(1025)}\r\n`, 'invalid multibulk length'],
  ])('%j ends the connection', (text, error) => {
    expect(read(text)).toEqual({ commands: [], error })
  })

  it('a command is read alike in whatever pieces it arrives', () => {
    const word = fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constant('\r\n'),
    )
    const command = fc.array(word, { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(
        fc.array(command, { minLength: 1, maxLength: 5 }),
        fc.array(fc.nat(2000), { maxLength: 30 }),
        (given, places) => {
          const commands = given.map(words => words.map(one => Buffer.from(one).toString()))
          const bytes = Buffer.concat(commands.map(written))
          expect(commandsOf(cut(bytes, places))).toEqual({ commands, isWithin: false })
        },
      ),
      { numRuns: randomRuns(100) },
    )
  })

  it('any bytes give the same commands and the same error in whatever pieces they arrive, and no other error', () => {
    const part = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom('*1\r\n', '*2\r\n', '$1\r\n', '$4\r\n', 'PING\r\n', 'a', '\r\n', '"', "'"),
      },
      fc.uint8Array({ maxLength: 8 }).map(bytes => Buffer.from(bytes).toString('latin1')),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), fc.array(fc.nat(200), { maxLength: 20 }), (parts, places) => {
        const bytes = Buffer.from(parts.join(''), 'latin1')
        expect(commandsOf(cut(bytes, places))).toEqual(commandsOf([bytes]))
      }),
      { numRuns: randomRuns(3000) },
    )
  })

  it('texts that are not UTF-8 stay distinct, from each other and from all others', () => {
    const texts = [[0xff], [0xfe], [0xc3], [0xc3, 0xbc], [0xef, 0xbf, 0xbd], [0xed, 0xb3, 0xbf]].map(bytes => {
      const head = Buffer.from(`*1\r\n$${bytes.length}\r\n`)
      return commandsOf([head, Buffer.from(bytes), Buffer.from('\r\n')]).commands[0]![0]!
    })
    expect(new Set(texts).size).toBe(texts.length)
    expect(texts).toContain('ü')
  })

  it('a command of the largest size that arrives byte by byte costs no more than its bytes', () => {
    const bytes = written(Array.from({ length: 15 }, () => 'a'.repeat(65_000)))
    const line = Buffer.from(`${'b '.repeat(500)}${'c'.repeat(60_000)}\n`)
    const { user } = process.cpuUsage()
    const singles = [...bytes, ...line].map(byte => Buffer.from([byte]))
    const { commands } = commandsOf(singles)
    expect(commands.map(({ length }) => length)).toEqual([15, 501])
    // to join the pieces again for each of them would take minutes
    expect(process.cpuUsage().user - user).toBeLessThan(5_000_000)
  })
})
