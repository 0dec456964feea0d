import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { follow } from '../../sources/client/follow.ts'
import type { Source, SourceDocument } from '../../sources/source.ts'
import { nonsense, withServer } from '../nonsense.ts'
import type { SuiteTest } from '../suite-test.ts'
import { isFailure, leavesNothingOpen, PASSWORD, soon, Update, using } from './watch.ts'
import { writeTests } from './write.ts'

/** A source that speaks to something which a test can change. */
export interface SourceUnderTest {
  readonly source: Source
  put(text: string): Promise<void>
  remove(): Promise<void>
  /** Makes the source unreadable until `start`, which restores its document. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

export interface SourceSuiteOptions {
  /** Creates a source without a document. */
  create(): Promise<SourceUnderTest>
  /** A source of this kind at `user:password@host:port`; left out if there is no server. */
  createAt?: ((authority: string) => Source) | undefined
  /** True if the source can write; default false: then it must have no `write`. */
  writes?: boolean | undefined
}

/** Lists the promises of every source, as tests for any framework: each `run` throws if the promise is broken. */
export function sourceSuite({ create, createAt, writes = false }: SourceSuiteOptions): readonly SuiteTest[] {
  const tests: SuiteTest[] = []
  const add = (name: string, test: (subject: SourceUnderTest) => Promise<void>) => {
    const run = async () => {
      const subject = await create()
      await test(subject).finally(() => subject.close())
    }
    tests.push({ name, run })
  }

  add('a source yields the existing document', async ({ source, put }) => {
    await put('rules: []')
    await using(source, async watch => {
      const { text, version } = await watch.next()
      assert.equal(text, 'rules: []')
      assert.notEqual(version, '')
    })
  })

  add(
    'a source yields that the document is missing if there is none, and the document once it comes',
    async ({ source, put }) => {
      await using(source, async watch => {
        const { text, isMissing } = await watch.next()
        assert.deepEqual([text, isMissing], ['', true])
        await put('rules: []')
        assert.equal((await watch.next()).text, 'rules: []')
      })
    },
  )

  add('a source yields each change once, with another version', async ({ source, put }) => {
    await using(source, async watch => {
      await watch.next()
      const versions = new Set<string>()
      for (const text of ['one', 'two', 'three', 'four']) {
        await put(text)
        const document = await watch.next()
        assert.equal(document.text, text)
        versions.add(document.version)
      }
      assert.equal(versions.size, 4)
    })
  })

  add('a source does not yield a document that was written again unchanged', async ({ source, put }) => {
    await put('one')
    await using(source, async watch => {
      await watch.next()
      await put('one')
      await put('two')
      assert.equal((await watch.next()).text, 'two')
    })
  })

  add(
    'a source yields that the document is missing when it is deleted, and the document when it is back',
    async subject => {
      await subject.put('one')
      await using(subject.source, async watch => {
        await watch.next()
        await subject.remove()
        const { text, isMissing } = await watch.next()
        assert.deepEqual([text, isMissing], ['', true])
        await subject.put('one')
        const back = await watch.next()
        assert.deepEqual([back.text, back.isMissing ?? false], ['one', false])
      })
    },
  )

  add(
    'a source yields the last of twenty changes in a row, and never an older one after it',
    async ({ source, put }) => {
      await using(source, async watch => {
        await watch.next()
        for (let number = 1; number <= 20; number += 1) await put(`${number}`)
        for (let seen = 0; seen < 20; ) {
          const number = Number((await watch.next()).text)
          assert.ok(number > seen, `${number} after ${seen}`)
          seen = number
        }
      })
    },
  )

  add('a source keeps every character, and a document of 1 MiB', async ({ source, put }) => {
    const odd = 'rules: # é 界 🌙 \u2028 "quoted" \\ %41 + & = <>\r\n\t- ok\n'
    const large = `${odd}${'# 0123456789abc\n'.repeat(65_536)}`
    await using(source, async watch => {
      await watch.next()
      await put(odd)
      assert.equal((await watch.next()).text, odd)
      await put(large)
      assert.ok((await watch.next()).text === large)
    })
  })

  add(
    'a source throws at a document of more than 4 MiB, and continues once it is replaced',
    async ({ source, put }) => {
      await put('x'.repeat(4 * 1024 * 1024 + 1))
      const message = 'watch must throw at a document of more than 4 MiB'
      await using(source, watch => assert.rejects(watch.next(), isFailure(/4 MiB/), message))
      await put('small')
      await using(source, async watch => assert.equal((await watch.next()).text, 'small'))
    },
  )

  add('a source ends at once by its signal, without an error', async ({ source, put }) => {
    await put('one')
    await using(source, async watch => {
      await watch.next()
      const waiting = watch.iterator.next()
      watch.abort()
      assert.equal((await soon(waiting, 'the end of a watch', 1000)).done, true)
    })
    await using(source, async watch => {
      watch.abort()
      assert.equal((await soon(watch.iterator.next(), 'the end of an aborted watch', 1000)).done, true)
    })
  })

  add('a source that cannot be reached throws an error with its name', async ({ source, stop }) => {
    await stop()
    await leavesNothingOpen(() =>
      using(source, async watch => {
        await assert.rejects(watch.next(), isFailure(source.name), 'watch must throw while the source cannot be read')
        assert.equal((await watch.iterator.next()).done, true)
      }),
    )
  })

  add('a source works again after an outage, with what changed since', async ({ source, put, stop, start }) => {
    await put('before')
    const controller = new AbortController()
    const news = new Update()
    const retryMs = [10, 100] as const
    const follower = { onDocument: (it: SourceDocument) => news.add(it.text), onError: () => news.add('error') }
    const following = follow(source, follower, controller.signal, { retryMs })
    try {
      await soon(news.heard('before'), 'the document before the outage')
      await stop()
      await soon(news.heard('error'), 'the outage')
      await start()
      await put('after')
      await soon(news.heard('after'), 'the document after the outage')
    } finally {
      controller.abort()
      await soon(following, 'the end of follow', 1000)
    }
  })

  add('a source can be watched twice', async ({ source, put }) => {
    await put('one')
    await using(source, first =>
      using(source, async second => {
        await Promise.all([first.next(), second.next()])
        first.abort()
        await put('two')
        assert.equal((await second.next()).text, 'two')
      }),
    )
  })

  add('a source leaves nothing open at its end', async ({ source, put }) => {
    await leavesNothingOpen(async () => {
      await put('one')
      await using(source, async watch => {
        await watch.next()
        const waiting = watch.iterator.next()
        await put('two')
        await waiting
      })
      await using(source, async watch => {
        const waiting = watch.iterator.next()
        await sleep(1)
        watch.abort()
        await waiting
      })
    })
  })

  add('a source leaves nothing open when its reader stops reading', async ({ source, put }) => {
    await put('one')
    await leavesNothingOpen(async () => {
      const { signal } = new AbortController()
      for await (const { text } of source.watch(signal)) {
        assert.equal(text, 'one')
        break
      }
    })
  })

  for (const { name, test } of writeTests(writes)) add(name, test)
  if (createAt) tests.push(...serverTests(createAt))
  return tests
}

function serverTests(createAt: (authority: string) => Source): SuiteTest[] {
  const at = (port: number) => createAt(`diana:${PASSWORD}@127.0.0.1:${port}`)
  const tests = Object.entries(nonsense).map(([what, talk]) => ({
    name: `a source throws at ${what}, and shows no password`,
    run: () =>
      withServer(talk, async port => {
        const source = at(port)
        assert.ok(!source.name.includes(PASSWORD) && source.name.includes(`127.0.0.1:${port}`), source.name)
        await using(source, watch =>
          assert.rejects(watch.next(), isFailure(source.name), 'watch must throw while the source cannot be read'),
        )
      }),
  }))
  const silent = {
    name: 'a source ends at once by its signal while the server is silent',
    run: () =>
      withServer(
        () => {},
        async (port, connected) => {
          await using(at(port), async watch => {
            const waiting = watch.iterator.next()
            await soon(connected, 'a connection')
            watch.abort()
            assert.equal((await soon(waiting, 'the end of a watch', 1000)).done, true)
          })
        },
      ),
  }
  return [...tests, silent]
}
