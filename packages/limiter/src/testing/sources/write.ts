import assert from 'node:assert/strict'
import { DianaError } from '../../errors.ts'
import type { Source, SourceDocument } from '../../sources/source.ts'
import { isFailure, leavesNothingOpen, using } from './watch.ts'

interface Subject {
  readonly source: Source
  put(text: string): Promise<void>
  remove(): Promise<void>
  stop(): Promise<void>
}

interface WriteTest {
  readonly name: string
  test(subject: Subject): Promise<void>
}

const signal = (): AbortSignal => AbortSignal.timeout(10_000)

/** Lists the promises of a source that can write; a source that cannot must not have `write`. */
export function writeTests(writes: boolean): readonly WriteTest[] {
  if (!writes) {
    return [
      {
        name: 'a read-only source has no write method',
        test: async ({ source }) => assert.equal(source.write, undefined),
      },
    ]
  }
  return [
    {
      name: 'a source replaces the document that was read, and returns its new version',
      test: async ({ source, put }) => {
        await put('one')
        const odd = 'rules: # é 界 🌙 "quoted" \\ %41 + & = <>\n\t- ok\n'
        const version = await writeOf(source)(odd, await read(source), signal())
        assert.deepEqual(await read(source), { text: odd, version })
      },
    },
    {
      name: 'a source writes a document that is missing or was deleted',
      test: async ({ source, put, remove }) => {
        await writeOf(source)('one', await read(source), signal())
        assert.equal((await read(source)).text, 'one')
        await put('two')
        await remove()
        await writeOf(source)('three', await read(source), signal())
        assert.equal((await read(source)).text, 'three')
      },
    },
    {
      name: 'a source does not overwrite a document that was changed since it was read',
      test: async ({ source, put, remove }) => {
        await put('one')
        const one = await read(source)
        await put('two')
        await assert.rejects(writeOf(source)('mine', one, signal()), isConflict)
        assert.equal((await read(source)).text, 'two')
        const two = await read(source)
        await remove()
        await assert.rejects(writeOf(source)('mine', two, signal()), isConflict)
        assert.equal((await read(source)).text, '')
        const nothing = await read(source)
        await put('three')
        await assert.rejects(writeOf(source)('mine', nothing, signal()), isConflict)
        assert.equal((await read(source)).text, 'three')
      },
    },
    {
      name: 'the watchers of a source get what was written',
      test: async ({ source, put }) => {
        await put('one')
        await using(source, async watch => {
          const base = await watch.next()
          await writeOf(source)('two', base, signal())
          assert.equal((await watch.next()).text, 'two')
        })
      },
    },
    {
      name: 'a source writes no document of more than 4 MiB',
      test: async ({ source, put }) => {
        await put('one')
        const large = 'x'.repeat(4 * 1024 * 1024 + 1)
        await assert.rejects(writeOf(source)(large, await read(source), signal()), isFailure(/4 MiB/))
        assert.equal((await read(source)).text, 'one')
      },
    },
    {
      name: 'a source that cannot write throws an error with its name, and leaves nothing open',
      test: async ({ source, put, stop }) => {
        await put('one')
        const base = await read(source)
        await stop()
        await leavesNothingOpen(() => assert.rejects(writeOf(source)('two', base, signal()), isFailure(source.name)))
      },
    },
  ]
}

function writeOf(source: Source): NonNullable<Source['write']> {
  assert.ok(source.write, 'the source cannot write')
  return source.write.bind(source)
}

async function read(source: Source): Promise<SourceDocument> {
  let document: SourceDocument | undefined
  await using(source, async watch => {
    document = await watch.next()
  })
  return document!
}

function isConflict(error: unknown): boolean {
  assert.ok(error instanceof DianaError && error.code === 'CONFLICT', `not a conflict: ${error}`)
  return true
}
