export { duration } from './duration.ts'
export { countedPath } from './path.ts'
export { headerFault, hostFault, methodFault } from './rules/pattern.ts'
export { listOf, textOf } from './rules/shape.ts'
