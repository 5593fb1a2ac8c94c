/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of loading code, which takes device memory of a size not told, and
 * of looking up its functions, which may load it.
 */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuModuleLoad(CUmodule *module, const char *fname)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuModuleLoad(module, fname);
	ts_agent_before_code();
	rc = ts_driver.fn_cuModuleLoad(module, fname);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_file(*module, fname);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuModuleLoadData(CUmodule *module, const void *image)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuModuleLoadData(module, image);
	ts_agent_before_code();
	rc = ts_driver.fn_cuModuleLoadData(module, image);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_loaded(*module, image);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuModuleLoadDataEx(CUmodule *module, const void *image,
        unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuModuleLoadDataEx(
		        module, image, numOptions, options, optionValues);
	ts_agent_before_code();
	rc = ts_driver.fn_cuModuleLoadDataEx(
	        module, image, numOptions, options, optionValues);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_loaded(*module, image);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuModuleLoadFatBinary(module, fatCubin);
	ts_agent_before_code();
	rc = ts_driver.fn_cuModuleLoadFatBinary(module, fatCubin);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_loaded(*module, fatCubin);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuLibraryLoadData(CUlibrary *library, const void *code,
        CUjit_option *jitOptions, void **jitOptionsValues,
        unsigned int numJitOptions, CUlibraryOption *libraryOptions,
        void **libraryOptionValues, unsigned int numLibraryOptions)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuLibraryLoadData(library, code, jitOptions,
		        jitOptionsValues, numJitOptions, libraryOptions,
		        libraryOptionValues, numLibraryOptions);
	ts_agent_before_code();
	rc = ts_driver.fn_cuLibraryLoadData(library, code, jitOptions,
	        jitOptionsValues, numJitOptions, libraryOptions,
	        libraryOptionValues, numLibraryOptions);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_loaded(*library, code);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
        CUjit_option *jitOptions, void **jitOptionsValues,
        unsigned int numJitOptions, CUlibraryOption *libraryOptions,
        void **libraryOptionValues, unsigned int numLibraryOptions)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuLibraryLoadFromFile(library, fileName,
		        jitOptions, jitOptionsValues, numJitOptions,
		        libraryOptions, libraryOptionValues, numLibraryOptions);
	ts_agent_before_code();
	rc = ts_driver.fn_cuLibraryLoadFromFile(library, fileName, jitOptions,
	        jitOptionsValues, numJitOptions, libraryOptions,
	        libraryOptionValues, numLibraryOptions);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_file(*library, fileName);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuModuleUnload(CUmodule hmod)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuModuleUnload(hmod);
	/* A thread that loads meanwhile may be given the handles that go. */
	ts_agent_code_gone(hmod);
	ts_agent_code_unloaded();
	rc = ts_driver.fn_cuModuleUnload(hmod);
	if (rc == CUDA_SUCCESS)
		ts_agent_code_unloaded();
	ts_leave();
	return rc;
}

CUresult ts_hook_cuLibraryUnload(CUlibrary library)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuLibraryUnload(library);
	/* A thread that loads meanwhile may be given the handles that go. */
	ts_agent_code_gone(library);
	ts_agent_code_unloaded();
	rc = ts_driver.fn_cuLibraryUnload(library);
	if (rc == CUDA_SUCCESS)
		ts_agent_code_unloaded();
	ts_leave();
	return rc;
}

CUresult ts_hook_cuModuleGetFunction(
        CUfunction *hfunc, CUmodule hmod, const char *name)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuModuleGetFunction(hfunc, hmod, name);
	ts_agent_before_code();
	rc = ts_driver.fn_cuModuleGetFunction(hfunc, hmod, name);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_named(*hfunc, hmod, name);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuLibraryGetKernel(
        CUkernel *pKernel, CUlibrary library, const char *name)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuLibraryGetKernel(pKernel, library, name);
	rc = ts_driver.fn_cuLibraryGetKernel(pKernel, library, name);
	if (rc == CUDA_SUCCESS)
		ts_agent_code_named(*pKernel, library, name);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuLibraryGetModule(pMod, library);
	ts_agent_before_code();
	rc = ts_driver.fn_cuLibraryGetModule(pMod, library);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_shared(*pMod, library);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuKernelGetFunction(pFunc, kernel);
	ts_agent_before_code();
	rc = ts_driver.fn_cuKernelGetFunction(pFunc, kernel);
	if (rc == CUDA_SUCCESS) {
		ts_agent_code_same(*pFunc, kernel);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}
