export { editOptions, type OptionChange } from '../rules/edit/edit-options.ts'
