import { parentPort, workerData } from 'node:worker_threads'
import type { Section } from '../rules/schema/section.ts'
import {
  createDocumentTasks,
  type DocumentThreadSettings,
  type TaskAnswer,
  type TaskQuestion,
} from './document-tasks.ts'
import { mergeExtensions } from './extensions.ts'

const { sections } = workerData as DocumentThreadSettings
const known =
  sections && (await Promise.all(sections.map(async ({ module, name }) => (await import(module))[name] as Section)))
const tasks = createDocumentTasks({ ...mergeExtensions({}, []), sections: known })

parentPort?.on('message', ({ id, task, given }: TaskQuestion) => {
  const tell = (answer: TaskAnswer): void => parentPort?.postMessage(answer)
  try {
    tell({ id, result: (tasks[task] as (...given: readonly unknown[]) => unknown)(...given) })
  } catch (error) {
    tell({ id, failed: error instanceof Error ? error.message : String(error) })
  }
})
