import { shapeOf } from '../../../packages/limiter/src/rules/schema/option-shape.ts'
import * as z from '../../../packages/limiter/src/shapes/index.ts'
import type { Source, SourceKind } from '../../../packages/limiter/src/sources/source.ts'
import type { SourceUnderTest } from '../../../packages/limiter/src/testing/sources/suite.ts'

/** Makes a source from the options of a rule file, as the parser does. */
export function createSource(
  kind: SourceKind,
  address: string,
  options: Readonly<Record<string, unknown>> = {},
): Source {
  return kind.create(address, z.strictObject(shapeOf(kind.options)).parse(options))
}

/** Lets a test of the source suite stop a server, which runs again when the test has ended. */
export function stopsOf(
  server: Pick<SourceUnderTest, 'stop' | 'start'>,
): Pick<SourceUnderTest, 'stop' | 'start' | 'close'> {
  let isRunning = true
  const start = async (): Promise<void> => {
    await server.start()
    isRunning = true
  }
  return {
    async stop() {
      isRunning = false
      await server.stop()
    },
    start,
    close: async () => {
      if (!isRunning) await start()
    },
  }
}
